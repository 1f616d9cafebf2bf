"""A pod's status from its containers' states."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from localcluster.agent.status import (
    Container,
    Running,
    State,
    Terminated,
    Waiting,
    phase,
    pod_status,
)

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
CREATING = Waiting()
UP = Running(NOW)
GOOD = Terminated(0, NOW, NOW)
BAD = Terminated(3, NOW, NOW)


def containers(*states: State, last: Terminated | None = None) -> list[Container]:
    return [Container(f"c{number}", "image", state, last) for number, state in enumerate(states)]


@pytest.mark.parametrize(
    ("states", "policy", "expected"),
    [
        ((CREATING,), "Always", "Pending"),
        ((UP, CREATING), "Always", "Pending"),
        ((UP,), "Always", "Running"),
        ((UP, BAD), "Never", "Running"),
        ((GOOD,), "Always", "Running"),
        ((GOOD,), "OnFailure", "Succeeded"),
        ((GOOD, GOOD), "Never", "Succeeded"),
        ((GOOD, BAD), "Never", "Failed"),
        ((BAD,), "OnFailure", "Running"),
    ],
)
def test_the_phase_is_the_kubelets(states: tuple[State, ...], policy: str, expected: str) -> None:
    assert phase(containers(*states), policy) == expected


def test_a_container_that_waits_to_start_again_keeps_its_pod_running() -> None:
    waiting = containers(Waiting("CrashLoopBackOff"), last=BAD)

    assert phase(waiting, "OnFailure") == "Running"


def test_a_running_pod_has_all_that_kubespawner_looks_for() -> None:
    status = pod_status({}, containers(UP), phase="Running", ip="127.64.0.9", started=NOW)

    assert status["phase"] == "Running"
    assert status["podIP"] == "127.64.0.9"
    assert [container["ready"] for container in status["containerStatuses"]] == [True]


def test_what_the_scheduler_wrote_stays() -> None:
    scheduled = {"type": "PodScheduled", "status": "True"}
    old = {"conditions": [scheduled], "qosClass": "Burstable"}

    status = pod_status(old, containers(UP), phase="Running", ip="127.64.0.9", started=NOW)

    assert scheduled in status["conditions"]
    assert status["qosClass"] == "Burstable"


def test_a_pod_is_initialized_when_its_init_containers_have_done_their_part() -> None:
    def initialized(*init: Container) -> tuple[str, str]:
        status = pod_status(
            {}, containers(CREATING), phase="Pending", ip="", started=NOW, init=init
        )
        [found] = [c for c in status["conditions"] if c["type"] == "Initialized"]
        return found["status"], found.get("message", "")

    done, failed = Container("check", "image", GOOD), Container("check", "image", BAD)
    sidecar = Container("proxy", "image", UP, is_sidecar=True)

    incomplete = "containers with incomplete status: [check]"
    assert initialized(done, sidecar) == ("True", "")
    assert initialized(failed, sidecar) == ("False", incomplete)


@pytest.mark.parametrize(("policy", "expected"), [("Never", "Failed"), ("Always", "Pending")])
def test_an_init_container_that_fails_for_good_fails_its_pod(policy: str, expected: str) -> None:
    failed = Container("check", "image", BAD)

    assert phase(containers(CREATING), policy, [failed]) == expected


def test_a_pod_has_a_sandbox_from_its_address_to_its_end() -> None:
    def has_sandbox(state: State, phase: str, ip: str) -> str:
        status = pod_status({}, containers(state), phase=phase, ip=ip, started=NOW)
        kind = "PodReadyToStartContainers"
        [found] = [c["status"] for c in status["conditions"] if c["type"] == kind]
        return str(found)

    assert has_sandbox(CREATING, "Pending", "") == "False"
    assert has_sandbox(CREATING, "Pending", "127.64.0.9") == "True"
    assert has_sandbox(BAD, "Failed", "127.64.0.9") == "False"


def test_a_condition_that_stays_as_it_was_keeps_its_time() -> None:
    first = pod_status({}, containers(UP), phase="Running", ip="127.64.0.9", started=NOW)
    for condition in first["conditions"]:
        condition["lastTransitionTime"] = "2020-01-01T00:00:00Z"

    second = pod_status(first, containers(BAD), phase="Failed", ip="127.64.0.9", started=NOW)

    times = {c["type"]: c["lastTransitionTime"] for c in second["conditions"]}
    assert times["Initialized"] == "2020-01-01T00:00:00Z"
    assert times["Ready"] != "2020-01-01T00:00:00Z"
    assert second["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3

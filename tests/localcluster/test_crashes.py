"""Containers that end soon after their start: what is told of their pod."""

from __future__ import annotations

import re

import pytest

from localcluster.client import Object
from tests.localcluster.faults import Told, pod
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")


def with_policy(made: Object, policy: str) -> Object:
    made["spec"]["restartPolicy"] = policy
    return made


def test_a_container_that_ends_again_and_again_is_backed_off(told: Told) -> None:
    uid = told.create(pod(exits_after="0", exit_code="3"))["metadata"]["uid"]
    whole = f"p_{told.namespace}({uid})"

    message = told.wait_for_reason("CrashLoopBackOff")
    wait_for(lambda: told.container()["restartCount"] >= 2)

    assert re.fullmatch(
        rf"back-off (500ms|1s|2s) restarting failed container=notebook pod={re.escape(whole)}",
        message,
    )
    container = told.container()
    ended = container["lastState"].get("terminated") or container["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (3, "Error")
    assert told.phase() == "Running"
    texts = told.texts()
    assert f"BackOff: Back-off restarting failed container notebook in pod {whole}" in texts
    assert told.wait_for_event("Started")["count"] >= 3


def test_a_container_without_enough_memory_is_killed(told: Told) -> None:
    asked = pod(exits_after="0", exit_code="137", exit_reason="OOMKilled")
    told.create(with_policy(asked, "Never"))

    [container] = told.wait_for_phase("Failed")["containerStatuses"]

    ended = container["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")


def test_a_container_that_does_well_at_last_keeps_running(told: Told) -> None:
    told.create(pod(exits_after="0", exit_times="2"))

    wait_for(lambda: told.container().get("ready") and told.container()["restartCount"] == 2)

    assert told.container()["lastState"]["terminated"]["exitCode"] == 1


def test_a_container_that_ends_well_restarts_only_if_it_always_does(told: Told) -> None:
    told.create(with_policy(pod("once", exits_after="0", exit_code="0"), "OnFailure"))
    told.create(with_policy(pod("always", exits_after="0", exit_code="0"), "Always"))

    told.wait_for_phase("Succeeded", "once")
    told.wait_for_reason("CrashLoopBackOff", "always")

    assert told.condition("Ready", "once")["reason"] == "PodCompleted"
    assert told.container("always")["lastState"]["terminated"]["reason"] == "Completed"


def test_the_output_is_the_message_if_the_container_asks_for_it(told: Told) -> None:
    made = with_policy(pod(exits_after="0", exit_output="CUDA error: out of memory"), "Never")
    made["spec"]["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError"
    told.create(made)

    [container] = told.wait_for_phase("Failed")["containerStatuses"]

    assert container["state"]["terminated"]["message"] == "CUDA error: out of memory"


def test_an_init_container_that_fails_is_told_and_the_others_wait(told: Told) -> None:
    made = with_policy(pod(pull_error="not-found"), "Always")
    made["spec"]["initContainers"] = [{"name": "check", "image": "example.org/check:1"}]
    told.create(made)

    wait_for(lambda: told.status().get("initContainerStatuses"))
    reason = "ImagePullBackOff"

    def init_reason() -> str:
        [init] = told.status()["initContainerStatuses"]
        return str(init["state"].get("waiting", {}).get("reason"))

    wait_for(lambda: init_reason() == reason)
    assert told.waiting() == {"reason": "PodInitializing"}
    assert told.condition("Initialized") == {
        "status": "False",
        "reason": "ContainersNotInitialized",
        "message": "containers with incomplete status: [check]",
    }
    assert told.events()[0]["involvedObject"]["fieldPath"] == "spec.initContainers{check}"


def test_only_the_pod_s_own_containers_crash(told: Told) -> None:
    made = with_policy(pod(exits_after="0", run_error="", exit_code="3"), "Never")
    made["spec"]["initContainers"] = [{"name": "check", "image": "example.org/check:1"}]
    told.create(made)

    status = told.wait_for_phase("Failed")

    [init], [container] = status["initContainerStatuses"], status["containerStatuses"]
    codes = [each["state"]["terminated"]["exitCode"] for each in (init, container)]
    assert codes == [0, 3]


def test_an_init_container_that_succeeds_is_told(told: Told) -> None:
    made = pod()
    made["spec"]["initContainers"] = [{"name": "check", "image": "example.org/check:1"}]
    told.create(made)

    [init] = told.wait_for_phase("Running")["initContainerStatuses"]

    assert (init["ready"], init["state"]["terminated"]["reason"]) == (True, "Completed")

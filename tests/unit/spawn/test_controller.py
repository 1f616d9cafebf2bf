"""The gates of one spawner; tests/hub/test_gates.py tests them in a hub."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.decision import Start
from gpuspawner.spawn.attempt import Phase
from gpuspawner.spawn.one_request import AlreadyStartedError
from gpuspawner.spawn.refusal import Refusal
from tests.unit.preflight.worlds import node
from tests.unit.spawn.hubs import A100, StillHub
from tests.unit.spawn.profiles.lists import GPU

TAINTED = ("Node", node("a", 2, taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]))
TWO_GPUS = {"accelerator": "a100", "gpus": 2, "image": None, "memory": None, "cpu": None}


def tolerating(pod: Manifest) -> Manifest:
    return {**pod, "spec": {**pod["spec"], "tolerations": [{"operator": "Exists"}]}}


async def test_each_gate_asks_admission_in_the_pod_s_namespace(
    hub_with: Callable[..., StillHub],
) -> None:
    hub = hub_with(TAINTED)
    hub.admission.answer = tolerating
    spawner = hub.spawner(accelerators={"a100": A100}, namespace="research")
    sent: list[Any] = []

    async def create_namespaced_pod(namespace: str, pod: Any) -> None:
        sent.append((namespace, pod))

    spawner.api.create_namespaced_pod = create_namespaced_pod

    # JupyterHub 5 passes a query as sent, 6 without the prefix.
    stored = await spawner.options_from_query({"opt-accelerator": ["a100"], "opt-gpus": ["2"]})
    assert len(hub.admission.asked) == 1
    spawner.user_options = stored
    await spawner.run_pre_spawn_hook()
    assert len(hub.admission.asked) == 2
    pod = await spawner.get_pod_manifest()
    assert await spawner._make_create_pod_request(pod, 3)
    assert len(hub.admission.asked) == 3

    assert stored == spawner.user_options == TWO_GPUS
    assert sent == [("research", pod)]
    for namespace, asked in hub.admission.asked:
        [container] = asked["spec"]["containers"]
        assert namespace == "research"
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "2"
    attempt = spawner.gates.attempt
    assert attempt is not None
    assert attempt.decision == Start(attempt.choice.proposal.grant)
    assert attempt.phase is Phase.SENT


async def test_a_pod_that_admission_does_not_change_is_refused(
    hub_with: Callable[..., StillHub],
) -> None:
    hub = hub_with(TAINTED)
    hub.admission.answer = lambda pod: pod
    spawner = hub.spawner(accelerators={"a100": A100})

    with pytest.raises(Refusal):
        await spawner.options_from_query({"opt-accelerator": ["a100"], "opt-gpus": ["2"]})


@pytest.mark.parametrize("is_room", [True, False], ids=["room", "no room"])
async def test_a_form_is_refused_if_another_request_starts_the_server_meanwhile(
    is_room: bool, hub_with: Callable[..., StillHub], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    hub = hub_with(TAINTED)
    spawner = hub.spawner(accelerators={"a100": A100})

    def meanwhile(pod: Manifest) -> Manifest:
        spawner._spawn_pending = True
        return tolerating(pod) if is_room else pod

    hub.admission.answer = meanwhile

    with pytest.raises(AlreadyStartedError):
        await spawner.run_options_from_form({"accelerator": ["a100"], "gpus--a100": ["2"]})
    assert caplog.messages == []


async def test_a_profile_that_cannot_be_loaded_at_the_start_is_not_a_500(
    hub_with: Callable[..., StillHub],
) -> None:
    spawner = hub_with(("Node", node("a", 2))).spawner(profile_list=[GPU])
    assert spawner.run_pre_spawn_hook() is None
    spawner.user_options = {"profile": "taken away meanwhile"}

    with pytest.raises(Refusal, match="an error in the hub's configuration"):
        await spawner.load_user_options()


async def test_on_a_copy_a_profile_fails_to_load_as_with_kubespawner(
    hub_with: Callable[..., StillHub],
) -> None:
    spawner = hub_with(("Node", node("a", 2))).spawner(profile_list=[GPU])
    assert spawner.run_pre_spawn_hook() is None

    copied = spawner.copied()
    copied.user_options = {"profile": "taken away meanwhile"}

    with pytest.raises(ValueError, match="taken away meanwhile"):
        await copied.load_user_options()

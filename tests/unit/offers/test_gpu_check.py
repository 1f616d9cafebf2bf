"""The init container that checks a server's GPUs, and which pods get it.

test_visible_gpus.py runs it.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpuspawner.compat.pods import plain
from gpuspawner.kube.objects import Manifest
from gpuspawner.offers.gpu_check import gpus, with_gpu_check
from gpuspawner.offers.visible_gpus import CONTAINER
from tests.unit.makers.hubs import A100, StillHub
from tests.unit.makers.profile_lists import GPU
from tests.unit.makers.worlds import node

SERVER: dict[str, Any] = {
    "name": "notebook",
    "image": "lab:1",
    "imagePullPolicy": "IfNotPresent",
    "args": ["jupyterhub-singleuser"],
    "ports": [{"containerPort": 8888}],
    "lifecycle": {"postStart": {"exec": {"command": ["true"]}}},
    "env": [{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}],
    "resources": {
        "limits": {"nvidia.com/gpu": "2", "memory": "1Gi"},
        "requests": {"nvidia.com/gpu": "2", "cpu": "500m"},
    },
    "securityContext": {"runAsUser": 1000},
    "volumeMounts": [{"name": "driver", "mountPath": "/usr/local/nvidia"}],
}
FIRST = {"name": "block-cloud-metadata"}


def pod(server: dict[str, Any] = SERVER, *first: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"initContainers": list(first), "containers": [server]}}


def limits(**amounts: str) -> dict[str, Any]:
    return {"name": "notebook", "resources": {"limits": amounts}}


def test_the_check_is_the_last_init_container_and_like_the_server_but_for_its_program() -> None:
    first, check = with_gpu_check(pod(SERVER, FIRST))["spec"]["initContainers"]

    assert first == FIRST
    assert check.pop("command")[:2] == ["sh", "-c"]
    assert check.pop("terminationMessagePolicy") == "FallbackToLogsOnError"
    alike = "env", "image", "imagePullPolicy", "resources", "securityContext", "volumeMounts"
    assert check == {"name": CONTAINER, **{key: SERVER[key] for key in alike}}


def test_the_server_keeps_its_program_and_the_given_pod_stays_as_it_is() -> None:
    given = pod()
    made = with_gpu_check(given)

    assert made["spec"]["containers"] == [SERVER]
    assert given == pod()


def test_a_pod_that_has_a_check_gets_no_second_one() -> None:
    once = with_gpu_check(pod())

    assert with_gpu_check(once) == once


@pytest.mark.parametrize(
    ("server", "found"),
    [
        (SERVER, {"nvidia.com/gpu": 2}),
        (limits(**{"nvidia.com/mig-1g.5gb": "1"}), {"nvidia.com/mig-1g.5gb": 1}),
        (limits(**{"nvidia.com/gpu.shared": "3"}), {"nvidia.com/gpu.shared": 3}),
        (limits(**{"nvidia.com/gpu": "1k"}), {"nvidia.com/gpu": 1000}),
        ({"resources": {"limits": {"nvidia.com/gpu": 4}}}, {"nvidia.com/gpu": 4}),
        (limits(**{"nvidia.com/gpu": "0"}), {}),
        (limits(**{"nvidia.com/gpu": "many"}), {}),
        (limits(**{"nvidia.com/hostdev": "1", "nvidia.com/mig-": "1"}), {}),
        (limits(**{"amd.com/gpu": "1", "memory": "1Gi"}), {}),
        ({"name": "notebook"}, {}),
        ({"name": "notebook", "resources": {"limits": None}}, {}),
    ],
)
def test_only_gpus_and_slices_of_nvidia_are_checked(server, found) -> None:
    assert gpus(pod(server)) == found
    assert bool(with_gpu_check(pod(server))["spec"]["initContainers"]) == bool(found)


async def sent(hub: StillHub, options: dict[str, Any], **traits: Any) -> Manifest:
    """Return the pod that KubeSpawner sends."""
    spawner = hub.spawner(**traits)
    spawner.user_options = options
    spawner.run_pre_spawn_hook()
    await spawner.load_user_options()
    return plain(await spawner.get_pod_manifest())


def checks(pod: Manifest) -> list[Any]:
    return [it for it in pod["spec"].get("initContainers") or () if it["name"] == CONTAINER]


def labelled(name: str, labels: dict[str, str]) -> tuple[str, Any]:
    made = node(name, 2)
    return "Node", {**made, "metadata": {"name": name, "labels": labels}}


TWO = {"accelerator": "a100", "gpus": 2}


async def test_without_the_trait_nothing_is_checked(hub_with) -> None:
    hub = hub_with(("Node", node("a", 2)))

    assert not checks(await sent(hub, TWO, accelerators={"a100": A100}))


async def test_a_server_with_an_accelerator_is_checked(hub_with) -> None:
    hub = hub_with(("Node", node("a", 2)))

    [check] = checks(await sent(hub, TWO, accelerators={"a100": A100}, check_gpus=True))

    assert check["command"][-3:] == ["2", "2", ""]


async def test_a_server_without_a_gpu_is_not_checked(hub_with) -> None:
    hub = hub_with(("Node", node("a", 2)))

    assert not checks(
        await sent(hub, {"accelerator": None}, accelerators={"a100": A100}, check_gpus=True)
    )


async def test_a_profile_with_gpus_is_checked(hub_with) -> None:
    hub = hub_with(("Node", node("a", 2)))

    pod = await sent(hub, {"profile": GPU["slug"]}, profile_list=[GPU], check_gpus=True)

    assert len(checks(pod)) == 1


@pytest.mark.parametrize(
    ("labels", "least"),
    [
        ({"gpu": "a100"}, "2"),
        ({"gpu": "a100", "nvidia.com/gpu.replicas": "1"}, "2"),
        ({"gpu": "a100", "nvidia.com/gpu.replicas": "4"}, "1"),
    ],
)
async def test_shares_of_one_gpu_are_one_gpu(labels, least, hub_with) -> None:
    others = {"gpu": "t4", "nvidia.com/gpu.replicas": "4"}
    hub = hub_with(labelled("a", labels), labelled("b", others))

    [check] = checks(await sent(hub, TWO, accelerators={"a100": A100}, check_gpus=True))

    assert check["command"][-2] == least


async def test_if_the_hub_sees_no_node_one_gpu_is_enough(hub_with) -> None:
    hub = hub_with()

    pod = await sent(hub, TWO, accelerators={"a100": A100}, check_gpus=True, preflight="off")

    assert checks(pod)[0]["command"][-2] == "1"

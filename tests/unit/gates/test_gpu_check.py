"""Which pods get the check of their GPUs, and which GPUs may be shares of one."""

from typing import Any

import pytest

from gpuspawner.compat.pods import plain
from gpuspawner.kube.objects import Manifest
from gpuspawner.offers.visible_gpus import CONTAINER
from tests.unit.makers.hubs import A100, StillHub
from tests.unit.makers.profile_lists import GPU
from tests.unit.makers.worlds import node


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

"""Which pretend GPUs a node has, and which of them a pod is given."""

from __future__ import annotations

import pytest

from localcluster import fleet
from localcluster.agent.devices import Allocations, devices_of, visible
from localcluster.client import Object
from localcluster.nodes import HIDDEN_DEVICES, node_objects


def node(fleet_name: str, name: str) -> Object:
    nodes: dict[str, Object] = {}
    for each in node_objects(fleet.load(fleet_name)):
        metadata = each["metadata"]
        assert isinstance(metadata, dict)
        nodes[metadata["name"]] = each
    return nodes[name]


def asking(**limits: str) -> Object:
    names = {"gpu": "nvidia.com/gpu", "small": "nvidia.com/mig-1g.5gb"}
    return {"resources": {"limits": {names[key]: value for key, value in limits.items()}}}


@pytest.mark.parametrize(
    ("fleet_name", "name", "resource", "count", "model", "memory"),
    [
        ("gke", "k80-0", "nvidia.com/gpu", 2, "Tesla K80", 11441),
        ("gke", "t4-0", "nvidia.com/gpu", 1, "Tesla T4", 15360),
        ("eks", "p3-8xlarge-0", "nvidia.com/gpu", 4, "Tesla V100-SXM2-16GB", 16384),
        ("aks", "aks-gpunp-1", "nvidia.com/gpu", 1, "Tesla V100-PCIE-16GB", 16384),
        ("on-premises", "dgx-0", "nvidia.com/gpu", 8, "NVIDIA A100-SXM4-40GB", 40960),
        ("old-device", "gtx-0", "alpha.kubernetes.io/nvidia-gpu", 1, "NVIDIA GPU", 16384),
    ],
)
def test_a_nodes_labels_say_which_gpus_it_has(
    fleet_name: str, name: str, resource: str, count: int, model: str, memory: int
) -> None:
    devices = devices_of(node(fleet_name, name))[resource]

    seen = {(device.gpu.name, device.gpu.memory) for device in devices}
    assert (len(devices), seen) == (count, {(model, memory * 2**20)})
    assert len({device.visible_as for device in devices}) == count


def test_a_slice_is_shown_as_part_of_its_gpu() -> None:
    [device] = devices_of(node("on-premises", "mig-0"))["nvidia.com/mig-3g.20gb"]
    [part] = device.gpu.slices

    assert device.gpu.name == "NVIDIA A100-SXM4-40GB"
    assert part.name == "NVIDIA A100-SXM4-40GB MIG 3g.20gb"
    assert device.visible_as == part.uuid


def test_pods_get_different_devices_until_there_are_none_and_again_when_they_end() -> None:
    machine = node("gke", "k80-0")
    allocations = Allocations()
    [first] = allocations.take("a", asking(gpu="1"), machine)
    [second] = allocations.take("b", asking(gpu="1"), machine)
    assert first != second
    assert allocations.take("c", asking(gpu="1"), machine) == ()

    allocations.give_back("a")

    assert allocations.take("c", asking(gpu="1"), machine) == (first,)


def test_a_container_that_asks_for_none_gets_none() -> None:
    assert Allocations().take("a", {}, node("gke", "k80-0")) == ()


@pytest.mark.parametrize(("asked", "count"), [("all", 2), ("void", 0), ("none", 0), (None, 0)])
def test_an_image_that_says_all_sees_every_gpu_of_the_node(asked: str | None, count: int) -> None:
    assert len(visible((), asked, node("gke", "k80-0"))) == count


def test_a_container_with_a_gpu_sees_no_other() -> None:
    machine = node("gke", "k80-0")
    taken = Allocations().take("a", asking(gpu="1"), machine)

    assert visible(taken, "all", machine) == taken


def test_a_pod_gets_the_devices_of_its_init_container_again_and_then_others() -> None:
    machine = node("eks", "p3-8xlarge-0")
    allocations = Allocations()
    [of_init] = allocations.take("a", asking(gpu="1"), machine)

    first, second = allocations.take("a", asking(gpu="2"), machine, {of_init})

    assert first == of_init
    assert second != of_init
    assert not {first, second} & {*allocations.take("b", asking(gpu="4"), machine)}


@pytest.mark.parametrize(("hidden", "count"), [(0, 2), (1, 1), (3, 0)])
def test_a_node_may_hide_devices_from_containers_that_have_them(hidden: int, count: int) -> None:
    machine = node("gke", "k80-0")
    machine["metadata"]["annotations"][HIDDEN_DEVICES] = f'{{"nvidia.com/gpu": {hidden}}}'
    taken = Allocations().take("a", asking(gpu="2"), machine)

    seen = visible(taken, None, machine)

    assert len(seen) == count
    assert set(seen) <= set(taken)

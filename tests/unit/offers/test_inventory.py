"""Nodes and GPUs are counted by the selectors of accelerators, profiles and choices."""

from __future__ import annotations

from typing import Any

import pytest

from gpuspawner.messages.administrators import explain_stock
from gpuspawner.offers.inventory import (
    Inventory,
    nodes_with_gpus,
    of_accelerators,
    of_profiles,
    take_stock,
)
from gpuspawner.offers.offers import Offers
from gpuspawner.scheduling import ClusterState
from tests.unit.makers.surveyed import node, pod

T4 = {"node_selector": {"gpu": "t4"}}
GPU = {"extra_resource_limits": {"nvidia.com/gpu": "1"}}
PLAIN = {
    "metadata": {"name": "cpu"},
    "status": {"allocatable": {"cpu": "8"}, "capacity": {"cpu": "8"}},
}


def cluster(*pods: dict[str, Any]) -> ClusterState:
    """Two nodes with four T4 each, and one without a GPU."""
    nodes = [node("a", 4), node("b", 4), PLAIN]
    return ClusterState.from_objects(nodes=nodes, pods=list(pods))


def of(profiles: object, **everywhere: object) -> tuple[Inventory, ...]:
    return tuple(take_stock(cluster(pod("x", "a", 3)), of_profiles(profiles, everywhere)))


def test_gpus_of_an_accelerator_are_counted_on_its_nodes() -> None:
    accelerators = Offers.parse(accelerators={"t4": T4, "h100": {"node_selector": {"gpu": "h100"}}})
    selections = of_accelerators(accelerators.accelerators.values(), {})

    assert tuple(take_stock(cluster(pod("x", "a", 3)), selections)) == (
        Inventory("t4", nodes=2, gpus=8, free=5),
        Inventory("h100", nodes=0, gpus=0, free=0),
    )


def test_settings_for_every_pod_narrow_the_nodes() -> None:
    accelerators = Offers.parse(accelerators={"t4": T4}).accelerators.values()
    terms = [{"matchExpressions": [{"key": "purpose", "operator": "In", "values": ["user"]}]}]

    for everywhere in ({"node_selector": {"pool": "b"}}, {"node_affinity_required": terms}):
        selections = of_accelerators(accelerators, everywhere)
        assert tuple(take_stock(cluster(), selections)) == (
            Inventory("t4", nodes=0, gpus=0, free=0),
        )


def test_a_profile_that_sets_its_gpus_to_zero_is_not_counted() -> None:
    none = {"extra_resource_limits": {"nvidia.com/gpu": "0"}}
    cpu = {"display_name": "CPU", "kubespawner_override": none}

    assert of([cpu]) == of([cpu], **GPU) == ()


def test_a_profile_that_removes_what_every_server_has_is_counted_without_it() -> None:
    none = {"extra_resource_limits": {"nvidia.com/gpu": None}}
    cpu = {"display_name": "CPU", "kubespawner_override": none}
    t4 = {"display_name": "T4", "kubespawner_override": {"node_selector": {"gpu": "t4", "b": None}}}

    assert of([cpu, t4], node_selector={"b": "c"}, **GPU) == (Inventory("T4", 2, 8, 5),)


def test_a_profile_s_label_replaces_that_of_every_server() -> None:
    t4 = {"display_name": "T4", "kubespawner_override": {"node_selector": {"gpu": "t4"}, **GPU}}

    assert of([t4], node_selector={"gpu": "none"}) == (Inventory("T4", 2, 8, 5),)


def test_an_accelerator_s_affinity_selects_nodes() -> None:
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["t4"]}]}]
    accelerators = Offers.parse(accelerators={"t4": {"node_affinity": terms}}).accelerators

    [stock] = take_stock(cluster(), of_accelerators(accelerators.values(), {}))

    assert stock.nodes == 2


def test_nodes_with_gpus_are_counted_even_if_their_gpus_are_not_healthy() -> None:
    state = ClusterState.from_objects(nodes=[node("a", 0, capacity=4), PLAIN], pods=[])

    assert nodes_with_gpus(state, ()) == 1


def test_other_devices_are_no_gpus_unless_they_are_offered() -> None:
    fuse, chip = "smarter-devices/fuse", "huawei.com/Ascend910"
    amounts = {"allocatable": {fuse: "20", chip: "8"}, "capacity": {fuse: "20", chip: "8"}}
    other = {"metadata": {"name": "n"}, "status": amounts}
    state = ClusterState.from_objects(nodes=[other, node("a", 4)], pods=[])

    def stock(limits: dict[str, str]) -> list[tuple[int, int]]:
        profile = {"kubespawner_override": {"extra_resource_limits": limits}}
        selections = of_profiles([profile], {})
        counted = nodes_with_gpus(state, selections)
        return [(counted, it.gpus) for it in take_stock(state, selections)]

    assert nodes_with_gpus(state, ()) == 1
    assert stock({fuse: "1", "nvidia.com/gpu": "1"}) == [(1, 4)]
    assert stock({chip: "1"}) == [(2, 8)]


def test_a_choice_of_another_maker_s_chips_is_counted_beside_one_of_gpus() -> None:
    chip, fuse = {"huawei.com/Ascend910": "1"}, {"smarter-devices/fuse": "1"}
    choices = {
        name: {
            "kubespawner_override": {
                "extra_resource_limits": limits,
                "node_selector": {"card": name},
            }
        }
        for name, limits in {"t4": {"nvidia.com/gpu": "1", **fuse}, "ascend": chip}.items()
    }
    profile = {"display_name": "P", "profile_options": {"card": {"choices": choices}}}

    counted = {(it.name, it.resource) for it in of_profiles([profile], {})}

    assert ("P: ascend", *chip) in counted
    assert not any(resource in fuse for _, resource in counted)


def test_gpus_of_an_old_device_plugin_are_counted_too() -> None:
    old = "alpha.kubernetes.io/nvidia-gpu"
    amounts = {"allocatable": {old: "2", "pods": "110"}, "capacity": {old: "2"}}
    state = ClusterState.from_objects(
        nodes=[{"metadata": {"name": "n"}, "status": amounts}], pods=[]
    )

    assert nodes_with_gpus(state, ()) == 1
    profiles = [{"display_name": "P", "kubespawner_override": {"extra_resource_limits": {old: 1}}}]
    assert [it.gpus for it in take_stock(state, of_profiles(profiles, {}))] == [2]


def test_gpus_that_are_not_healthy_are_not_counted() -> None:
    state = ClusterState.from_objects(nodes=[node("a", 3, capacity=4)], pods=[])
    accelerators = Offers.parse(accelerators={"t4": T4}).accelerators.values()

    assert tuple(take_stock(state, of_accelerators(accelerators, {}))) == (
        Inventory("t4", 1, 3, 3),
    )


@pytest.mark.parametrize("in_capacity", [0, 4])
def test_nodes_whose_device_plugin_is_down_are_still_nodes(in_capacity: int) -> None:
    sick = [node(name, 0, capacity=in_capacity) for name in "ab"]
    state = ClusterState.from_objects(nodes=[*sick, PLAIN], pods=[])
    accelerators = Offers.parse(accelerators={"t4": T4}).accelerators.values()

    [stock] = take_stock(state, of_accelerators(accelerators, {}))

    assert stock == Inventory("t4", nodes=2, gpus=0, free=0)
    assert explain_stock(stock) == "t4: 2 nodes, but no healthy GPU is reported there"
    assert explain_stock(Inventory("t4", 0, 0, 0)) == "t4: no node"


@pytest.mark.parametrize("everywhere", [{}, {"node_selector": {"purpose": "user"}}])
def test_nodes_that_never_had_gpus_are_no_nodes_of_a_profile_whose_pool_is_empty(
    everywhere: dict[str, Any],
) -> None:
    plain = {**PLAIN, "metadata": {"name": "cpu", "labels": {"purpose": "user"}}}
    state = ClusterState.from_objects(nodes=[plain], pods=[])
    profile = {"display_name": "T4", "kubespawner_override": GPU}

    [stock] = take_stock(state, of_profiles([profile], everywhere))

    assert explain_stock(stock) == "T4: no node"


def test_nodes_whose_label_alone_promises_gpus_are_nodes() -> None:
    labels = {"nvidia.com/gpu.present": "true"}
    promising = {**PLAIN, "metadata": {"name": "new", "labels": labels}}
    state = ClusterState.from_objects(nodes=[promising, PLAIN], pods=[])
    profile = {"display_name": "T4", "kubespawner_override": GPU}

    [stock] = take_stock(state, of_profiles([profile], {}))

    assert explain_stock(stock) == "T4: 1 node, but no healthy GPU is reported there"


def test_a_profile_with_gpus_is_counted_on_its_nodes() -> None:
    profile = {
        "display_name": "T4",
        "kubespawner_override": {"node_selector": {"gpu": "t4"}, **GPU},
    }

    assert of([profile]) == of({"t4": profile}) == (Inventory("T4", nodes=2, gpus=8, free=5),)


def test_a_profile_without_gpus_is_not_counted() -> None:
    assert of([{"display_name": "Small", "kubespawner_override": {"mem_limit": "1G"}}]) == ()


def test_choices_with_nodes_of_their_own_are_counted_each() -> None:
    choices = {
        "t4": {"display_name": "T4", "kubespawner_override": {"node_selector": {"gpu": "t4"}}},
        "a100": {"display_name": "A100", "kubespawner_override": {"node_selector": {"gpu": "a"}}},
    }
    profile = {
        "display_name": "GPU",
        "kubespawner_override": GPU,
        "profile_options": {"model": {"display_name": "Model", "choices": choices}},
    }

    assert of([profile]) == (Inventory("GPU: T4", 2, 8, 5), Inventory("GPU: A100", 0, 0, 0))


def test_a_choice_that_only_adds_gpus_belongs_to_its_profile() -> None:
    profile = {
        "display_name": "GPU",
        "kubespawner_override": {"node_selector": {"gpu": "t4"}},
        "profile_options": {"count": {"choices": {"one": {"kubespawner_override": GPU}}}},
    }

    assert of([profile]) == (Inventory("GPU", 2, 8, 5),)


def test_what_cannot_be_known_before_a_form_is_open_is_not_counted() -> None:
    assert of(lambda _: []) == of(None) == of([None, "profile"]) == ()

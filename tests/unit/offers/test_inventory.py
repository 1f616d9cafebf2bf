"""Nodes and GPUs are counted by the selectors of accelerators, profiles and choices."""

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


def cluster(*nodes):
    """By default, two nodes with four T4 each, of which three are taken, and one without a GPU."""
    some = [node("a", 4), node("b", 4), PLAIN]
    return ClusterState.from_objects(nodes=nodes or some, pods=() if nodes else [pod("x", "a", 3)])


def of(profiles, **everywhere):
    return tuple(take_stock(cluster(), of_profiles(profiles, everywhere)))


def of_t4s(*nodes, entry=T4, **everywhere):
    accelerators = Offers.parse(accelerators={"t4": entry}).accelerators.values()
    return tuple(take_stock(cluster(*nodes), of_accelerators(accelerators, everywhere)))


def profile(name="T4", options=(), **override):
    options = {"its": {"choices": options}} if options else {}
    return {"display_name": name, "kubespawner_override": override, "profile_options": options}


def having(**amounts):
    return {"metadata": {"name": "n"}, "status": {"allocatable": amounts, "capacity": amounts}}


def test_gpus_of_an_accelerator_are_counted_on_its_nodes():
    assert of_t4s() == (Inventory("t4", nodes=2, gpus=8, free=5),)
    assert of_t4s(entry={"node_selector": {"gpu": "h100"}}) == (Inventory("t4", 0, 0, 0),)


def test_settings_for_every_pod_narrow_the_nodes():
    terms = [{"matchExpressions": [{"key": "purpose", "operator": "In", "values": ["user"]}]}]

    for everywhere in ({"node_selector": {"pool": "b"}}, {"node_affinity_required": terms}):
        assert of_t4s(**everywhere) == (Inventory("t4", nodes=0, gpus=0, free=0),)


def test_a_profile_that_sets_its_gpus_to_zero_is_not_counted():
    cpu = profile(extra_resource_limits={"nvidia.com/gpu": "0"})

    assert of([cpu]) == of([cpu], **GPU) == ()


def test_a_profile_that_removes_what_every_server_has_is_counted_without_it():
    cpu = profile("CPU", extra_resource_limits={"nvidia.com/gpu": None})
    t4 = profile(node_selector={"gpu": "t4", "b": None})

    assert of([cpu, t4], node_selector={"b": "c"}, **GPU) == (Inventory("T4", 2, 8, 5),)


def test_a_profile_s_label_replaces_that_of_every_server():
    t4 = profile(**T4, **GPU)

    assert of([t4], node_selector={"gpu": "none"}) == (Inventory("T4", 2, 8, 5),)


def test_an_accelerator_s_affinity_selects_nodes():
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["t4"]}]}]

    assert of_t4s(entry={"node_affinity": terms})[0].nodes == 2


def test_nodes_with_gpus_are_counted_even_if_their_gpus_are_not_healthy():
    assert nodes_with_gpus(cluster(node("a", 0, capacity=4), PLAIN), ()) == 1


def test_other_devices_are_no_gpus_unless_they_are_offered():
    fuse, chip = "smarter-devices/fuse", "huawei.com/Ascend910"
    state = cluster(having(**{fuse: "20", chip: "8"}), node("a", 4))

    def stock(limits):
        selections = of_profiles([profile(extra_resource_limits=limits)], {})
        counted = nodes_with_gpus(state, selections)
        return [(counted, it.gpus) for it in take_stock(state, selections)]

    assert nodes_with_gpus(state, ()) == 1
    assert stock({fuse: "1", "nvidia.com/gpu": "1"}) == [(1, 4)]
    assert stock({chip: "1"}) == [(2, 8)]


def test_a_choice_of_another_maker_s_chips_is_counted_beside_one_of_gpus():
    chip, fuse = {"huawei.com/Ascend910": "1"}, {"smarter-devices/fuse": "1"}
    choices = {
        name: profile(name, extra_resource_limits=limits, node_selector={"card": name})
        for name, limits in {"t4": {"nvidia.com/gpu": "1", **fuse}, "ascend": chip}.items()
    }

    counted = {(it.name, it.resource) for it in of_profiles([profile("P", choices)], {})}

    assert ("P: ascend", *chip) in counted
    assert not any(resource in fuse for _, resource in counted)


def test_gpus_of_an_old_device_plugin_are_counted_too():
    old = "alpha.kubernetes.io/nvidia-gpu"
    state = cluster(having(**{old: "2", "pods": "110"}))
    profiles = [profile(extra_resource_limits={old: 1})]

    assert nodes_with_gpus(state, ()) == 1
    assert [it.gpus for it in take_stock(state, of_profiles(profiles, {}))] == [2]


def test_gpus_that_are_not_healthy_are_not_counted():
    assert of_t4s(node("a", 3, capacity=4)) == (Inventory("t4", 1, 3, 3),)


@pytest.mark.parametrize("in_capacity", [0, 4])
def test_nodes_whose_device_plugin_is_down_are_still_nodes(in_capacity):
    [stock] = of_t4s(*(node(name, 0, capacity=in_capacity) for name in "ab"), PLAIN)

    assert stock == Inventory("t4", nodes=2, gpus=0, free=0)
    assert explain_stock(stock) == "t4: 2 nodes, but no healthy GPU is reported there"
    assert explain_stock(Inventory("t4", 0, 0, 0)) == "t4: no node"


@pytest.mark.parametrize("everywhere", [{}, {"node_selector": {"purpose": "user"}}])
def test_nodes_that_never_had_gpus_are_no_nodes_of_a_profile_whose_pool_is_empty(everywhere):
    plain = {**PLAIN, "metadata": {"name": "cpu", "labels": {"purpose": "user"}}}

    [stock] = take_stock(cluster(plain), of_profiles([profile(**GPU)], everywhere))

    assert stock == Inventory("T4", 0, 0, 0)


def test_nodes_whose_label_alone_promises_gpus_are_nodes():
    labels = {"nvidia.com/gpu.present": "true"}
    promising = {**PLAIN, "metadata": {"name": "new", "labels": labels}}

    [stock] = take_stock(cluster(promising, PLAIN), of_profiles([profile(**GPU)], {}))

    assert stock == Inventory("T4", 1, 0, 0)


def test_a_profile_with_gpus_is_counted_on_its_nodes():
    t4 = profile(**T4, **GPU)

    assert of([t4]) == of({"t4": t4}) == (Inventory("T4", nodes=2, gpus=8, free=5),)


def test_a_profile_without_gpus_is_not_counted():
    assert of([profile(mem_limit="1G")]) == ()


def test_choices_with_nodes_of_their_own_are_counted_each():
    choices = {"t4": profile("T4", **T4), "a100": profile("A100", node_selector={"gpu": "a"})}

    counted = of([profile("GPU", choices, **GPU)])

    assert counted == (Inventory("GPU: T4", 2, 8, 5), Inventory("GPU: A100", 0, 0, 0))


def test_a_choice_that_only_adds_gpus_belongs_to_its_profile():
    assert of([profile("GPU", {"one": profile(**GPU)}, **T4)]) == (Inventory("GPU", 2, 8, 5),)


def test_what_cannot_be_known_before_a_form_is_open_is_not_counted():
    assert of(lambda _: []) == of(None) == of([None, "profile"]) == ()

"""How much of each limit a pod uses, and which users it counts for."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.servers import USER, ServerPod
from gpuspawner.offers.types import Accelerator
from gpuspawner.policies.charges import Charge, Meter, as_annotated, counts_as_gpu, owner_names
from gpuspawner.policies.policies import Measure, What
from gpuspawner.scheduling import Rules
from tests.unit.makers.policy_pods import (
    GPU,
    MIG,
    annotations_of,
    container,
    labels_of,
    read,
    server_pod,
)

GIB = 2**30
GPUS, SERVERS = Measure(What.GPUS), Measure(What.GPU_SERVERS)
MEMORY, CPU = Measure(What.MEMORY), Measure(What.CPU)
ACCELERATORS = (
    Accelerator("any", "Any", GPU),
    Accelerator("t4", "T4", GPU, node_selector={"gpu": "t4"}),
    Accelerator("a100", "A100", GPU, node_selector={"gpu": "a100"}),
    Accelerator("a100-big", "A100", GPU, node_selector={"gpu": "a100"}),
    Accelerator("slice", "Slice", MIG, node_selector={"gpu": "a100"}),
    Accelerator("fpga", "FPGA", "example.com/fpga"),
)
WEIGHTED = "example.com/weighted"
METER = Meter(Rules.of_version("1.36"), ACCELERATORS, {MIG: Fraction(1, 7)})


def gpus(of: str) -> Measure:
    return Measure(What.GPUS, of)


def charge_of(pod: ServerPod, accelerator: str = "") -> Charge:
    """What a pod takes, as it says itself whose it is."""
    said = as_annotated(pod)
    if accelerator:
        said = dataclasses.replace(said, accelerator=accelerator)
    return METER.charge(pod, said)


def charged(**spec: object) -> dict[Measure, Any]:
    """What a pod takes, without zeros."""
    amounts = charge_of(server_pod(**spec)).amounts
    return {measure: amount for measure, amount in amounts.items() if amount}


def of_accelerators(charge: Charge) -> dict[str, Any]:
    found = {it.key: charge.of(gpus(it.key)) for it in ACCELERATORS}
    return {key: amount for key, amount in found.items() if amount}


# Amounts


def test_a_pod_takes_what_its_containers_request_together() -> None:
    containers = [container(gpu=2, memory="16Gi", cpu="1500m"), container(memory="1Gi", cpu=1)]

    taken = charged(containers=containers, nodeSelector={"gpu": "t4"})

    of_gpus = {GPUS: 2, gpus(GPU): 2, gpus("t4"): 2, SERVERS: 1}
    assert taken == {**of_gpus, MEMORY: 17 * GIB, CPU: 2500}


def test_overhead_and_the_resources_of_the_whole_pod_count() -> None:
    over = charged(overhead={"memory": "1Gi"}, containers=[container(memory="1Gi")])
    whole = charged(resources={"requests": {"cpu": "4"}}, containers=[container(cpu=1)])

    assert (over, whole) == ({MEMORY: 2 * GIB}, {CPU: 4000})


def test_a_slice_counts_as_the_weight_says() -> None:
    taken = charged(containers=[container(**{MIG: 2})], nodeSelector={"gpu": "a100"})

    seventh = Fraction(2, 7)
    assert taken == {GPUS: seventh, gpus(MIG): seventh, gpus("slice"): seventh, SERVERS: 1}


def test_a_device_without_any_weight_still_makes_a_server_with_a_gpu() -> None:
    weighted = dataclasses.replace(METER, weights={"example.com/nic": 0})
    nic = server_pod(containers=[container(**{"example.com/nic": 3})])

    charge = weighted.charge(nic, as_annotated(nic))

    assert (charge.of(SERVERS), charge.of(GPUS)) == (1, 0)


@pytest.mark.parametrize(
    ("resource", "counts"),
    [
        *((it, True) for it in ("nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu")),
        *((it, True) for it in ("nvidia.com/mig-3g.20gb", "example.com/fpga", WEIGHTED)),
        *((it, False) for it in ("example.com/nic", "nvidia.com/gpux", "memory", "hugepages-2Mi")),
    ],
)
def test_which_resources_count_as_gpus(resource, counts) -> None:
    assert counts_as_gpu(resource, ACCELERATORS, {WEIGHTED: 1}) is counts


# Accelerators: by the pod's own fields


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        ({}, {"any": 1}),
        ({"pool": "x"}, {"any": 1}),
        ({"gpu": "t4"}, {"t4": 1}),
        ({"gpu": "t4", "pool": "x"}, {"t4": 1}),
        ({"gpu": "h100"}, {"any": 1}),
        ({"gpu": "a100"}, {"a100": 1, "a100-big": 1}),
    ],
)
def test_a_pod_has_the_accelerators_whose_nodes_it_selects(selector, taken) -> None:
    charge = charge_of(server_pod(nodeSelector=selector))

    assert of_accelerators(charge) == taken


@pytest.mark.parametrize(
    ("named", "taken"),
    [
        ("a100-big", {"a100-big": 1}),
        ("a100", {"a100": 1}),
        *((it, {"a100": 1, "a100-big": 1}) for it in ("t4", "any", "slice", "gone", "")),
    ],
)
def test_a_named_accelerator_counts_only_if_the_pod_s_own_fields_allow_it(named, taken) -> None:
    selector = {"gpu": "a100"}
    annotated = server_pod(nodeSelector=selector, grant={"accelerator": named})

    assert of_accelerators(charge_of(annotated)) == taken
    assert of_accelerators(charge_of(server_pod(nodeSelector=selector), named)) == taken


resources = st.sampled_from([GPU, MIG, "amd.com/gpu", "memory", "cpu"])
containers = st.lists(
    st.dictionaries(resources, st.integers(0, 8)).map(lambda it: container(**it)), max_size=3
)


@given(containers, containers, st.sampled_from([{}, {"gpu": "t4"}, {"gpu": "a100"}]), st.text())
def test_a_pod_takes_of_all_gpus_what_its_resources_take_together(
    main, init, selector, named
) -> None:
    pod = server_pod(containers=main, initContainers=init, nodeSelector=selector)

    charge = charge_of(pod, named)

    by_resource = [charge.of(gpus(it)) for it in (GPU, MIG, "amd.com/gpu")]
    assert charge.of(GPUS) == sum(by_resource)
    assert charge.has_gpus is (charge.of(GPUS) > 0)
    for accelerator in ACCELERATORS:
        assert charge.of(gpus(accelerator.key)) in (0, charge.of(gpus(accelerator.resource)))


# Pods that gpuspawner didn't make


@pytest.mark.parametrize("user", ["ann", "Ann Smith", "ann@example.org", "ann--x", "ä" * 80])
def test_a_server_s_pod_has_the_names_of_its_owner_and_none_of_anyone_else(user) -> None:
    charge = charge_of(server_pod(user, "Exp. 1"))

    person_s = owner_names(user, labels_of(user)[USER])
    assert charge.owners == person_s
    assert charge.server == "Exp. 1"
    assert not charge.owners & owner_names("bob", "bob")


@given(st.text(st.characters(exclude_characters="/"), min_size=1), st.text(min_size=1, max_size=63))
def test_no_user_s_name_is_the_label_of_another_user(name, label) -> None:
    """No name contains a slash: JupyterHub refuses these."""
    assert name not in owner_names("", label)


@pytest.mark.parametrize("metadata", [{"annotations": None}, {"annotations": {}, "labels": None}])
def test_a_pod_without_annotations_or_labels_can_be_read(metadata) -> None:
    pod = read({"metadata": {"name": "x", **metadata}, "spec": {}})

    assert charge_of(pod).owners == set()


# What a pod says of itself, which only the commands believe


@pytest.mark.parametrize("metadata", [{}, {"labels": labels_of("ann", "exp-1")}])
def test_the_name_of_a_server_is_the_annotation_s_or_the_label_s(metadata) -> None:
    written = {"annotations": annotations_of("ann"), **metadata} if metadata else {}

    assert charge_of(server_pod(server="exp-1", metadata=written)).server == "exp-1"


def test_a_pod_that_two_users_seem_to_own_counts_for_both() -> None:
    charge = charge_of(server_pod("ann", metadata={"annotations": annotations_of("bob")}))

    assert charge.owners == {"label/ann", "bob"}


def test_what_a_pod_says_of_policies_and_groups_is_kept() -> None:
    grant = {"policies": ["a", "b"], "groups": ["course"], "newer": "key"}

    charge = charge_of(server_pod(grant=grant))

    assert (charge.policies, charge.groups) == ({"a", "b"}, {"course"})

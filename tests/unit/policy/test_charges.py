"""What a pod takes of limits, by its own fields."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.quantity import QuantityError
from gpuspawner.policy.charges import counts_as_gpu
from tests.unit.policy.charging import (
    ACCELERATORS,
    CPU,
    GIB,
    GPUS,
    MEMORY,
    METER,
    SERVERS,
    charged,
    gpus,
    of_accelerators,
)
from tests.unit.policy.pods import GPU, MIG, container, server_pod

# Amounts


def test_a_pod_takes_what_its_containers_request_together() -> None:
    containers = [container(gpu=2, memory="16Gi", cpu="1500m"), container(memory="1Gi", cpu=1)]

    taken = charged(containers=containers, nodeSelector={"gpu": "t4"})

    assert taken == {
        GPUS: 2,
        gpus(GPU): 2,
        gpus("t4"): 2,
        SERVERS: 1,
        MEMORY: 17 * GIB,
        CPU: 2500,
    }


def test_a_server_without_a_gpu_takes_memory_and_cpu_only() -> None:
    charge = METER.charge(server_pod(containers=[container(memory="1Gi", cpu=2)]))

    assert not charge.has_gpus
    assert charge.of(GPUS) == charge.of(SERVERS) == 0
    assert (charge.of(MEMORY), charge.of(CPU)) == (GIB, 2000)


def test_a_limit_without_a_request_counts_as_in_the_api_server() -> None:
    only_limits = {"name": "a", "resources": {"limits": {GPU: "2", "memory": "1Gi"}}}

    assert charged(containers=[only_limits])[GPUS] == 2


def test_an_init_container_counts_if_it_takes_more_than_the_others_together() -> None:
    more = charged(initContainers=[container(gpu=4)], containers=[container(gpu=1)])
    less = charged(initContainers=[container(gpu=1)], containers=[container(gpu=2)])

    assert (more[GPUS], less[GPUS]) == (4, 2)
    assert more[SERVERS] == less[SERVERS] == 1


def test_a_sidecar_counts_beside_the_others() -> None:
    sidecar = {**container(gpu=1), "restartPolicy": "Always"}

    assert charged(initContainers=[sidecar], containers=[container(gpu=2)])[GPUS] == 3


def test_overhead_and_the_resources_of_the_whole_pod_count() -> None:
    assert charged(overhead={"memory": "1Gi"}, containers=[container(memory="1Gi")]) == {
        MEMORY: 2 * GIB
    }
    assert charged(resources={"requests": {"cpu": "4"}}, containers=[container(cpu=1)]) == {
        CPU: 4000
    }


def test_zero_gpus_are_none() -> None:
    assert not METER.charge(server_pod(containers=[container(gpu=0)])).has_gpus


def test_a_slice_counts_as_the_weight_says() -> None:
    taken = charged(containers=[container(**{MIG: 2})], nodeSelector={"gpu": "a100"})

    seventh = Fraction(2, 7)
    assert taken == {GPUS: seventh, gpus(MIG): seventh, gpus("slice"): seventh, SERVERS: 1}
    assert charged(containers=[container(**{MIG: 7})])[GPUS] == 1


def test_several_resources_count_together_and_apart() -> None:
    taken = charged(containers=[container(gpu=1, **{MIG: 7})])

    assert (taken[GPUS], taken[gpus(GPU)], taken[gpus(MIG)]) == (2, 1, 1)


def test_a_device_that_is_no_gpu_counts_only_if_it_is_offered_or_has_a_weight() -> None:
    assert SERVERS in charged(containers=[container(**{"example.com/fpga": 1})])
    assert not charged(containers=[container(**{"example.com/nic": 1})])
    weighted = replace(METER, weights={"example.com/nic": 0})
    nic = server_pod(containers=[container(**{"example.com/nic": 3})])
    assert weighted.charge(nic).of(SERVERS) == 1
    assert weighted.charge(nic).of(GPUS) == 0


@pytest.mark.parametrize(
    ("resource", "counts"),
    [
        ("nvidia.com/gpu", True),
        ("amd.com/gpu", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-3g.20gb", True),
        ("example.com/fpga", True),
        ("example.com/weighted", True),
        ("example.com/nic", False),
        ("nvidia.com/gpux", False),
        ("memory", False),
        ("hugepages-2Mi", False),
    ],
)
def test_which_resources_count_as_gpus(resource, counts) -> None:
    assert counts_as_gpu(resource, ACCELERATORS, {"example.com/weighted": 1}) is counts


@pytest.mark.parametrize("amount", ["lots", "1e40", ""])
def test_a_pod_whose_requests_are_no_quantities_has_no_charge(amount) -> None:
    with pytest.raises(QuantityError):
        METER.charge(server_pod(containers=[container(memory=amount)]))


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
    charge = METER.charge(server_pod(nodeSelector=selector))

    assert of_accelerators(charge) == taken


@pytest.mark.parametrize(
    ("named", "taken"),
    [
        ("a100-big", {"a100-big": 1}),
        ("a100", {"a100": 1}),
        ("t4", {"a100": 1, "a100-big": 1}),
        ("any", {"a100": 1, "a100-big": 1}),
        ("slice", {"a100": 1, "a100-big": 1}),
        ("gone", {"a100": 1, "a100-big": 1}),
        ("", {"a100": 1, "a100-big": 1}),
    ],
)
def test_a_named_accelerator_counts_only_if_the_pod_s_own_fields_allow_it(named, taken) -> None:
    selector = {"gpu": "a100"}
    annotated = server_pod(nodeSelector=selector, grant={"accelerator": named})

    assert of_accelerators(METER.charge(annotated)) == taken
    assert of_accelerators(METER.charge(server_pod(nodeSelector=selector), named)) == taken


def test_the_accelerator_of_a_pod_to_be_sent_replaces_the_one_that_its_annotation_names() -> None:
    pod = server_pod(nodeSelector={"gpu": "a100"}, grant={"accelerator": "a100"})

    assert of_accelerators(METER.charge(pod, "a100-big")) == {"a100-big": 1}


resources = st.sampled_from([GPU, MIG, "amd.com/gpu", "memory", "cpu"])
containers = st.lists(
    st.dictionaries(resources, st.integers(0, 8)).map(lambda it: container(**it)), max_size=3
)


@given(containers, containers, st.sampled_from([{}, {"gpu": "t4"}, {"gpu": "a100"}]), st.text())
def test_a_pod_takes_of_all_gpus_what_its_resources_take_together(
    main, init, selector, named
) -> None:
    pod = server_pod(containers=main, initContainers=init, nodeSelector=selector)

    charge = METER.charge(pod, named)

    by_resource = [charge.of(gpus(it)) for it in (GPU, MIG, "amd.com/gpu")]
    assert charge.of(GPUS) == sum(by_resource)
    assert charge.has_gpus is (charge.of(GPUS) > 0)
    for accelerator in ACCELERATORS:
        assert charge.of(gpus(accelerator.key)) in (0, charge.of(gpus(accelerator.resource)))

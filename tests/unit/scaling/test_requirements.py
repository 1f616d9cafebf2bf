"""What a pool requires, set against what a pod selects, as Karpenter does."""

from __future__ import annotations

import pytest

from gpuspawner.kube.meta import LabelSelectorRequirement as Need
from gpuspawner.scaling.requirements import PoolRequirements
from gpuspawner.scheduling.filters import Filters
from tests.unit.makers.outlooks import pod, state

KEY = "example.com/team"
CPUS = "karpenter.k8s.aws/instance-cpu"


def allows(pool: list[Need], *wanted: tuple[str, str, list[str]], **labels: str) -> bool:
    expressions = [{"key": key, "operator": op, "values": values} for key, op, values in wanted]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    asked = pod(selector={}, affinity=affinity)
    return PoolRequirements(labels, tuple(pool), ()).allow(Filters(state(), asked))


@pytest.mark.parametrize(
    ("pool", "wanted", "answer"),
    [
        ([], ("In", ["a"]), False),
        ([], ("Exists", []), False),
        ([], ("NotIn", ["a"]), True),
        ([], ("DoesNotExist", []), True),
        ([Need(KEY, "Exists")], ("In", ["a"]), True),
        ([Need(KEY, "DoesNotExist")], ("In", ["a"]), False),
        ([Need(KEY, "In", ["a", "b"])], ("In", ["b"]), True),
        ([Need(KEY, "In", ["a", "b"])], ("In", ["c"]), False),
        ([Need(KEY, "In", ["a"])], ("NotIn", ["a"]), False),
        ([Need(KEY, "In", ["a"])], ("DoesNotExist", []), False),
        ([Need(KEY, "NotIn", ["a"])], ("In", ["a"]), False),
        ([Need(KEY, "NotIn", ["a"])], ("In", ["a", "b"]), True),
        ([Need(KEY, "In", ["a", "b"]), Need(KEY, "NotIn", ["b"])], ("In", ["b"]), False),
    ],
)
def test_a_label_of_ones_own_must_be_defined_and_intersect(pool, wanted, answer) -> None:
    assert allows(pool, (KEY, *wanted)) is answer


@pytest.mark.parametrize(
    ("bound", "value", "answer"),
    [
        (Need(CPUS, "Gt", ["4"]), "8", True),
        (Need(CPUS, "Gt", ["8"]), "8", False),
        (Need(CPUS, "Gte", ["8"]), "8", True),
        (Need(CPUS, "Lte", ["8"]), "8", True),
        (Need(CPUS, "Lte", ["4"]), "8", False),
        (Need(CPUS, "Lt", ["8"]), "8", False),
    ],
)
def test_karpenters_bounds_are_kept(bound, value, answer) -> None:
    assert allows([bound], (CPUS, "In", [value])) is answer


@pytest.mark.parametrize(
    "key",
    [
        "topology.kubernetes.io/zone",
        "node.kubernetes.io/instance-type",
        "karpenter.sh/capacity-type",
        "karpenter.k8s.aws/instance-gpu-name",
        "karpenter.azure.com/sku-gpu-name",
        "eks.amazonaws.com/instance-gpu-name",
        "topology.ebs.csi.aws.com/zone",
        "topology.k8s.aws/zone-id",
        "oci.oraclecloud.com/gpu-shape",
    ],
)
def test_a_label_that_a_provider_gives_to_every_node_needs_no_definition(key) -> None:
    assert allows([], (key, "In", ["x"]))


def test_a_label_that_only_a_device_plugin_gives_must_be_defined() -> None:
    assert not allows([], ("nvidia.com/gpu.product", "In", ["Tesla-T4"]))


def test_a_label_of_the_template_has_one_value() -> None:
    assert allows([], ("team", "In", ["a"]), team="a")
    assert not allows([], ("team", "In", ["b"]), team="a")


def test_one_of_several_terms_is_enough() -> None:
    terms = [
        {"matchExpressions": [{"key": KEY, "operator": "In", "values": ["x"]}]},
        {"matchExpressions": [{"key": KEY, "operator": "DoesNotExist"}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    asked = pod(selector={}, affinity={"nodeAffinity": required})

    assert PoolRequirements({}, (), ()).allow(Filters(state(), asked))


def test_a_pod_for_one_present_node_gets_no_new_one() -> None:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    asked = pod(selector={}, affinity={"nodeAffinity": required})

    assert not PoolRequirements({}, (), ()).allow(Filters(state(), asked))


def test_only_nodes_within_the_requirements_are_still_made() -> None:
    pool = PoolRequirements({}, (Need(KEY, "In", ["a"]),), ())

    assert pool.describe({KEY: "a"})
    assert pool.describe({})
    assert not pool.describe({KEY: "b"})

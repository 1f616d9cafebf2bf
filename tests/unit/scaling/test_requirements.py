"""What a pool requires, set against what a pod selects, as Karpenter does."""

from __future__ import annotations

import pytest

from gpuspawner.kube.meta import LabelSelectorRequirement as Need
from gpuspawner.kube.pods import Pod
from gpuspawner.scaling.requirements import PoolRequirements
from gpuspawner.scheduling.filters import Filters
from tests.unit.makers.outlooks import pod, state

KEY = "example.com/team"
CPUS = "karpenter.k8s.aws/instance-cpu"
NAMED = {"key": "metadata.name", "operator": "In", "values": ["n"]}


Wanted = tuple[str, str, list[str]]


def pod_of(*terms: dict[str, object]) -> Pod:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return pod(selector={}, affinity={"nodeAffinity": required})


def term(*wanted: Wanted) -> dict[str, object]:
    expressions = [{"key": key, "operator": op, "values": values} for key, op, values in wanted]
    return {"matchExpressions": expressions}


def allows(pool: list[Need], *wanted: Wanted, **labels: str) -> bool:
    filters = Filters(state(), pod_of(term(*wanted)))
    return PoolRequirements(labels, tuple(pool), ()).allow(filters)


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
    ("key", "is_of_every_node"),
    [
        ("topology.kubernetes.io/zone", True),
        ("node.kubernetes.io/instance-type", True),
        ("karpenter.sh/capacity-type", True),
        ("karpenter.k8s.aws/instance-gpu-name", True),
        ("karpenter.azure.com/sku-gpu-name", True),
        ("eks.amazonaws.com/instance-gpu-name", True),
        ("topology.ebs.csi.aws.com/zone", True),
        ("topology.k8s.aws/zone-id", True),
        ("oci.oraclecloud.com/gpu-shape", True),
        ("nvidia.com/gpu.product", False),
    ],
)
def test_a_label_that_a_provider_gives_to_every_node_needs_no_definition(
    key, is_of_every_node
) -> None:
    assert allows([], (key, "In", ["x"])) is is_of_every_node


def test_a_label_of_the_template_has_one_value() -> None:
    assert allows([], ("team", "In", ["a"]), team="a")
    assert not allows([], ("team", "In", ["b"]), team="a")


@pytest.mark.parametrize(
    ("terms", "answer"),
    [
        ([term((KEY, "In", ["x"])), term((KEY, "DoesNotExist", []))], True),
        ([{**term((KEY, "DoesNotExist", [])), "matchFields": [NAMED]}], False),
    ],
    ids=["one of several is enough", "no new node is the one that is named"],
)
def test_a_pod_may_have_several_terms_and_name_a_node(terms, answer) -> None:
    asked = Filters(state(), pod_of(*terms))

    assert PoolRequirements({}, (), ()).allow(asked) is answer


def test_only_nodes_within_the_requirements_are_still_made() -> None:
    pool = PoolRequirements({}, (Need(KEY, "In", ["a"]),), ())

    assert pool.describe({KEY: "a"})
    assert pool.describe({})
    assert not pool.describe({KEY: "b"})

"""Which of Cluster Autoscaler's node groups a node belongs to, by their names."""

from __future__ import annotations

import pytest

from gpuspawner.scaling.outlook import CanScaleUp, Why
from tests.unit.scaling.groups import (
    EKS,
    MAY,
    UUID,
    asks,
    group,
    look,
    why,
)
from tests.unit.scaling.outlooks import (
    node,
)


@pytest.mark.parametrize(
    ("name", "labels", "node_name"),
    [
        (f"eks-gpu-{UUID}", {EKS: "gpu"}, "ip-10-0-0-1.ec2.internal"),
        (
            "gke-c1-gpu-1a2b3c4d-grp",
            {"cloud.google.com/gke-nodepool": "gpu"},
            "gke-c1-gpu-1a2b3c4d-x1yz",
        ),
        (
            "https://example.com/zones/z/instanceGroups/gke-c-gpu-1a2b3c4d-grp",
            {"cloud.google.com/gke-nodepool": "gpu"},
            "gke-c-gpu-1a2b3c4d-x1yz",
        ),
        ("aks-gpu-12345678-vmss", {"agentpool": "gpu"}, "aks-gpu-12345678-vmss000001"),
        (
            "eksctl-c-nodegroup-gpu-NodeGroup-1A2B3C",
            {"alpha.eksctl.io/nodegroup-name": "gpu"},
            "ip-10-0-0-1",
        ),
        ("gpu", {"doks.digitalocean.com/node-pool": "gpu"}, "gpu-x1y2z"),
        ("gpu", {}, "gpu-1a2b3c4d"),
    ],
    ids=["eks", "gke", "gke url", "aks", "eksctl", "doks", "node name alone"],
)  # fmt: skip
def test_a_node_is_matched_to_its_group(name: str, labels: dict[str, str], node_name: str) -> None:
    present = node(node_name, 1, labels=labels, unschedulable=True)

    assert isinstance(look(group(name), nodes=(present,)), CanScaleUp)


@pytest.mark.parametrize(
    ("name", "labels", "node_name"),
    [
        (f"eks-gpu-large-{UUID}", {EKS: "gpu"}, "ip-10-0-0-1"),
        (f"eks-mygpu-{UUID}", {EKS: "gpu"}, "ip-10-0-0-1"),
        ("gpu", {}, "gpu-large-1"),
        ("gpu", {}, "gpularge-1"),
        ("gpu", {}, "gpu"),
    ],
)
def test_a_node_of_a_similar_name_belongs_to_no_group(
    name: str, labels: dict[str, str], node_name: str
) -> None:
    present = node(node_name, 1, labels=labels, unschedulable=True)

    assert look(group(name), nodes=(present,), asked=asks(4)) == MAY


def test_a_node_that_may_belong_to_two_groups_belongs_to_none() -> None:
    groups = group(f"eks-gpu-{UUID}"), group(f"eks-gpu-{UUID.replace('4', '5')}")

    assert look(*groups, asked=asks(4)) == MAY


def test_groups_of_one_pool_in_several_zones_are_told_apart_by_their_nodes() -> None:
    pool = {"cloud.google.com/gke-nodepool": "gpu"}
    nodes = (
        node("gke-c-gpu-1a2b3c4d-aaaa", 1, labels=pool, unschedulable=True),
        node("gke-c-gpu-5e6f7a8b-bbbb", 1, labels=pool, unschedulable=True),
    )
    full = group("gke-c-gpu-1a2b3c4d-grp", 1, 1), group("gke-c-gpu-5e6f7a8b-grp", 1, 1)

    assert why(look(*full, nodes=nodes)) == [Why.AT_MAXIMUM, Why.AT_MAXIMUM]

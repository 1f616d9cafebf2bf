"""What Cluster Autoscaler's node groups can still add, by its status and their nodes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest

from gpuspawner.cluster.autoscaler_objects import STATUS, AutoscalerObjects
from gpuspawner.kube.autoscaling import ConfigMap
from gpuspawner.kube.objects import Undecodable, convert
from gpuspawner.scaling.cluster_autoscaler import _MOST_POOLS, _GroupNames
from gpuspawner.scaling.outlook import CannotScaleUp, CanScaleUp, MayScaleUp, Source, WhyNoNode
from gpuspawner.scaling.starting_nodes import is_young
from gpuspawner.scheduling.filters import Filters
from tests.unit.makers.groups import BEFORE_1_30, EKS, GPU, MAY, UUID, group, look, member, status
from tests.unit.makers.outlooks import (
    Cluster,
    asks,
    autoscalers,
    node,
    outlook,
    short,
    state,
    status_map,
    why,
)

ZONE = "topology.kubernetes.io/zone"
GARDENER = "worker.gardener.cloud/pool"
GKE, EKSCTL = "cloud.google.com/gke-nodepool", "alpha.eksctl.io/nodegroup-name"
SOON = MayScaleUp(Source.CLUSTER_AUTOSCALER, on_its_way=True, is_listed=True)
PERHAPS = MayScaleUp(Source.CLUSTER_AUTOSCALER)
STARTS = [{"key": "startup-taint.cluster-autoscaler.kubernetes.io/cilium", "effect": "NoSchedule"}]
LEAVES = [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]
SIGN = member(gpus=0, labels=GPU)
FOUR = [member(str(number)) for number in range(4)]
LIKE_IT = group(f"eks-gpu-{UUID.replace('4', '5')}")

IF = {
    "it is below its maximum": ([group()], [member()], asks(), CanScaleUp),
    "it is at its maximum": (
        [group(target=4, registered=4)], [member()], asks(), [WhyNoNode.AT_MAXIMUM]
    ),
    "nobody has seen its nodes": ([group(target=0, registered=0)], [], asks(), MAY),
    "it is unhealthy": ([group(health="Unhealthy")], [member()], asks(), PERHAPS),
    "one of its nodes is being drained": (
        [group(target=3, registered=4)], FOUR, asks(), CanScaleUp
    ),
    "its second kind of nodes is enough": (
        [group()], [member("s", 1), member("l", 4)], asks(4), CanScaleUp
    ),
    "its first kind of nodes is enough": (
        [group()], [member("l", 4), member("s", 1)], asks(4), CanScaleUp
    ),
    "its only node has a sign of GPUs but none": ([group()], [SIGN], asks(), MAY),
    "its only node has no GPUs, and none are asked for": ([group()], [SIGN], asks(0), CanScaleUp),
    "its next node may be in another zone": (
        [group()], [member(labels={ZONE: "a"})], asks(selector={ZONE: "b"}), MAY
    ),
    "its node is tainted while it starts": ([group()], [member(taints=STARTS)], asks(), CanScaleUp),
    "one of its nodes hasn't joined yet": (
        [group(target=2, most=2, registered=1)], [member()], asks(), CanScaleUp
    ),
    "its first node hasn't joined yet": ([group(target=1, most=1, registered=0)], [], asks(), SOON),
    "another one hasn't joined yet while one is being deleted": (
        [group(target=2, most=2, registered=2, leaving=1)],
        [member(), member("old", taints=LEAVES)],
        asks(),
        CanScaleUp,
    ),
    "its last node has not joined in time": (
        [group(target=2, most=2, registered=1, lost=1)], [member()], asks(), [WhyNoNode.AT_MAXIMUM]
    ),
    "its first node has not joined in time": (
        [group(target=1, most=1, registered=0, lost=1)], [], asks(), [WhyNoNode.AT_MAXIMUM]
    ),
    "another one has joined since one had not in time": (
        [group(target=3, most=3, registered=1, lost=1)],
        [member(), member("new")],
        asks(),
        [WhyNoNode.AT_MAXIMUM],
    ),
    "the node may belong to another group too": ([group(), LIKE_IT], [member()], asks(4), MAY),
}  # fmt: skip


@pytest.mark.parametrize(("groups", "nodes", "asked", "answer"), IF.values(), ids=IF)
def test_what_a_group_can_do_for_a_pod_if(groups, nodes, asked, answer) -> None:
    assert short(look(*groups, nodes=tuple(nodes), asked=asked)) == answer


def test_a_group_below_its_maximum_adds_a_node_like_its_own() -> None:
    name = f"eks-gpu-{UUID}"

    assert look(group()) == CanScaleUp(1, 4, None, Source.CLUSTER_AUTOSCALER, name)


def test_a_group_at_zero_is_remembered_until_it_is_deleted() -> None:
    objects = autoscalers(status=status(group()))
    cluster = Cluster(state(member()), objects, "detect")
    assert isinstance(cluster.outlook(asks()), CanScaleUp)
    cluster.state.remove("Node", "", "n")

    assert isinstance(cluster.outlook(asks()), CanScaleUp)
    assert why(cluster.outlook(asks(4))) == [WhyNoNode.NO_SUCH_MACHINE]

    objects.put(status_map(status(group("eks-core"))))
    cluster.outlook(asks(4))
    objects.put(status_map(status(group(target=0, registered=0))))

    assert cluster.outlook(asks(4)) == MAY


def test_a_node_whose_device_plugin_fails_does_not_change_what_its_group_makes() -> None:
    cluster = Cluster(state(member()), autoscalers(status=status(group())), "detect")
    assert isinstance(cluster.outlook(asks()), CanScaleUp)
    cluster.state.put(convert("Node", member(gpus=0)))

    assert isinstance(cluster.outlook(asks()), CanScaleUp)
    assert why(cluster.outlook(asks(2))) == [WhyNoNode.NO_SUCH_MACHINE]


def test_a_node_without_its_gpus_yet_is_on_its_way() -> None:
    now = datetime.now(UTC).isoformat()
    nodes = (member("old"), member("young", 0, created=now, unschedulable=False, labels=GPU))

    assert isinstance(look(group(target=2, most=2, registered=2), nodes=nodes), CanScaleUp)


def test_a_node_whose_gpus_are_not_labelled_yet_is_on_its_way() -> None:
    """Feature discovery may label a node some time after its device plugin shows its GPUs."""
    product = {"nvidia.com/gpu.product": "Tesla-T4"}
    young = member("young", created=datetime.now(UTC).isoformat(), unschedulable=False)
    old, asked = member("old", labels=product), asks(selector=product)

    found = look(group(target=2, most=2, registered=2), nodes=(old, young), asked=asked)
    first = look(group(target=1, most=1, registered=1), nodes=(young,), asked=asked)

    assert (short(found), first) == (CanScaleUp, SOON)


@pytest.mark.parametrize("others", [("g4dn.xlarge", "g5.xlarge"), ("g5.xlarge", "g4dn.xlarge")])
def test_a_node_whose_gpus_are_not_labelled_yet_is_like_the_others_of_its_type(others) -> None:
    """A group of several types may make machines with different GPUs."""
    kind, products = (
        "node.kubernetes.io/instance-type", {"g4dn.xlarge": "Tesla-T4", "g5.xlarge": "A10G"}
    )  # fmt: skip
    selectors = {it: {"nvidia.com/gpu.product": of} for it, of in products.items()}
    settled = [member(it, labels={kind: it, **selectors[it]}) for it in others]
    now = datetime.now(UTC).isoformat()
    young = member("young", labels={kind: "g5.xlarge"}, created=now, unschedulable=False)

    def found(wanted: str, *nodes: Any) -> object:
        full = group(target=3, most=3, registered=3)
        return short(look(full, nodes=(*nodes, young), asked=asks(selector=selectors[wanted])))

    assert found("g5.xlarge", *settled) == CanScaleUp
    assert found("g4dn.xlarge", *settled) == [WhyNoNode.AT_MAXIMUM]
    assert found("g4dn.xlarge", settled[others.index("g4dn.xlarge")]) == [WhyNoNode.AT_MAXIMUM]


def test_a_starting_node_of_no_known_group_may_be_the_one_that_is_expected() -> None:
    now = datetime.now(UTC).isoformat()
    stranger = node("ip-10-0-0-1", 0, labels=GPU, created=now)
    at_maximum = group("gpu", target=1, most=1, registered=1)

    assert look(at_maximum, nodes=(stranger,)) == SOON


def test_a_node_that_has_joined_since_the_status_was_written_is_not_expected_once_more() -> None:
    assert why(look(group(target=1, most=1, registered=0))) == [WhyNoNode.AT_MAXIMUM]


def test_of_a_target_of_millions_only_hundreds_of_nodes_are_counted() -> None:
    objects = autoscalers(status=status(group(target=10**7, most=10**7)))
    cluster = Cluster(state(member()), objects, "detect")
    (growth,) = cluster.pools.seen(Filters(cluster.state, asks()))

    assert len(growth.coming) < 1000
    assert isinstance(cluster.outlook(asks()), CanScaleUp)


def test_pools_that_pods_make_up_do_not_fill_the_memory() -> None:
    names = _GroupNames((f"eks-gpu-{UUID}",))
    for number in range(2000):
        names.of_pool(f"made-up-{number}")

    assert len(names._by_pool) <= _MOST_POOLS
    assert names.of_pool("gpu") == [f"eks-gpu-{UUID}"]


def test_no_group_is_named_after_an_empty_label() -> None:
    """GKE cuts long names of pools, also behind a hyphen."""
    assert _GroupNames(("gke-c-a100-80gb--1a2b3c4d-grp",)).of_pool("") == []


def test_each_node_is_read_once_for_all_pods(monkeypatch) -> None:
    read = Mock(wraps=is_young)
    monkeypatch.setattr("gpuspawner.scaling.cluster_autoscaler.is_young", read)
    nodes = [node(f"{name}-{number}", labels={}) for name in "abc" for number in range(20)]
    objects = autoscalers(status=status(*(group(name) for name in "abc")))
    cluster = Cluster(state(*nodes), objects, "detect")
    for gpus in (1, 2, 4):
        cluster.pools.seen(Filters(cluster.state, asks(gpus)))

    assert read.call_count == len(nodes)


def test_a_node_that_changes_is_read_again() -> None:
    alike = state(member("a", gpus=1), member("b", gpus=1))
    cluster = Cluster(alike, autoscalers(status=status(group(registered=2))), "detect")
    assert why(cluster.outlook(asks(4))) == [WhyNoNode.NO_SUCH_MACHINE]
    cluster.state.put(convert("Node", member("a", gpus=4)))

    assert isinstance(cluster.outlook(asks(4)), CanScaleUp)


def test_nodes_that_differ_as_all_nodes_do_are_of_one_kind() -> None:
    nodes = (
        member("a", memory="31900Mi", labels={"nvidia.com/gfd.timestamp": "1"}),
        member("b", memory="31930Mi", labels={"alpha.eksctl.io/instance-id": "i-1"}),
    )
    cluster = Cluster(state(*nodes), autoscalers(status=status(group())), "detect")
    (growth,) = cluster.pools.seen(Filters(cluster.state, asks()))

    assert growth.is_uniform


def test_a_pool_at_zero_is_no_hope_for_a_pod_that_selects_another_one_by_name() -> None:
    full, empty = group("a100", 1, 1), group("gke-c-t4-1a2b3c4d-grp", 0, 3, registered=0)
    nodes = (node("a100-x", labels={GKE: "a100"}, unschedulable=True),)

    assert why(look(full, empty, nodes=nodes, asked=asks(selector={GKE: "a100"}))) == [
        WhyNoNode.AT_MAXIMUM,
        WhyNoNode.NO_SUCH_MACHINE,
    ]
    growing = group("t4", 1, 3, registered=0)
    assert isinstance(
        look(full, growing, nodes=nodes, asked=asks(selector={GKE: "a100"})), CannotScaleUp
    )
    for selector in ({GKE: "t4"}, {}, {GKE: "cut-because-it-is-long"}):
        assert look(full, empty, nodes=nodes, asked=asks(selector=selector)) == MAY


@pytest.mark.parametrize(
    ("name", "label", "node_name"),
    [
        ("shoot--p--c-{}", GARDENER, "shoot--p--c-gpu-7b8d4-x1yz2"),
        ("shoot--p--c-{}-z1", GARDENER, "shoot--p--c-gpu-z1-7b8d4-x1yz2"),
        ("k8s-{}-12345678-vmss", "agentpool", "k8s-gpu-12345678-vmss000000"),
    ],
    ids=["gardener", "gardener in a zone", "aks engine"],
)
def test_an_empty_group_of_another_name_is_no_hope_for_a_pod_that_selects_a_full_pool(
    name, label, node_name
) -> None:
    groups = group(name.format("gpu"), 1, 1), group(name.format("cpu"), 0, 3, registered=0)
    full = node(node_name, 1, labels={label: "gpu"}, unschedulable=True)

    assert why(look(*groups, nodes=(full,), asked=asks(selector={label: "gpu"}))) == [
        WhyNoNode.AT_MAXIMUM,
        WhyNoNode.NO_SUCH_MACHINE,
    ]


@pytest.mark.parametrize(
    ("own", "full", "selector"),
    [
        ("shoot--p--c-z1-z2", "shoot--p--c-gpu-z1", {GARDENER: "z1"}),
        (f"eks-{UUID}", "eksctl-c-nodegroup-big-gpu-NodeGroup-1A2B3C", {EKSCTL: "gpu"}),
    ],
    ids=["a pool of Gardener that is called like a zone", "a pool without a group of its name"],
)
def test_a_group_that_may_be_that_of_the_selected_pool_may_grow(own, full, selector) -> None:
    groups = group(own, 0, 3, registered=0), group(full, 3, 3, registered=3)

    assert look(*groups, nodes=(), asked=asks(selector=selector)) == MAY


OF_ITS_GROUP = {
    "eks": (f"eks-gpu-{UUID}", {EKS: "gpu"}, "ip-10-0-0-1.ec2.internal"),
    "gke": ("gke-c1-gpu-1a2b3c4d-grp", {GKE: "gpu"}, "gke-c1-gpu-1a2b3c4d-x1yz"),
    "gke url": (
        "https://example.com/zones/z/instanceGroups/gke-c-gpu-1a2b3c4d-grp",
        {GKE: "gpu"}, "gke-c-gpu-1a2b3c4d-x1yz",
    ),
    "gke autopilot": (
        "gk3-c-nap-1x2y3z-1a2b3c4d-grp", {GKE: "nap-1x2y3z"}, "gk3-c-nap-1x2y3z-1a2b3c4d-x1yz"
    ),
    "gardener": ("shoot--p--c-gpu", {GARDENER: "gpu"}, "shoot--p--c-gpu-7b8d4-x1yz2"),
    "gardener in a zone": (
        "shoot--p--c-gpu-z1", {GARDENER: "gpu"}, "shoot--p--c-gpu-z1-7b8d4-x1yz2"
    ),
    "aks": ("aks-gpu-12345678-vmss", {"agentpool": "gpu"}, "aks-gpu-12345678-vmss000001"),
    "aks engine": ("k8s-gpu-12345678-vmss", {"agentpool": "gpu"}, "k8s-gpu-12345678-vmss000001"),
    "eksctl": ("eksctl-c-nodegroup-gpu-NodeGroup-1A2B3C", {EKSCTL: "gpu"}, "ip-10-0-0-1"),
    "magnum": ("gpu-1a2b3c4d", {"magnum.openstack.org/nodegroup": "gpu"}, "c-gpu-node-0"),
    "doks": ("gpu", {"doks.digitalocean.com/node-pool": "gpu"}, "gpu-x1y2z"),
    "node name alone": ("gpu", {}, "gpu-1a2b3c4d"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "labels", "node_name"), OF_ITS_GROUP.values(), ids=OF_ITS_GROUP)
def test_a_node_is_matched_to_its_group(name, labels, node_name) -> None:
    present = node(node_name, 1, labels=labels, unschedulable=True)

    assert isinstance(look(group(name), nodes=(present,)), CanScaleUp)


@pytest.mark.parametrize(
    ("name", "labels", "node_name"),
    [
        (f"eks-gpu-large-{UUID}", {EKS: "gpu"}, "ip-10-0-0-1"),
        (f"eks-mygpu-{UUID}", {EKS: "gpu"}, "ip-10-0-0-1"),
        (f"eks-big-gpu-{UUID}", {EKS: "gpu"}, "ip-10-0-0-1"),
        ("eksctl-c-nodegroup-big-gpu-NodeGroup-1A2B3C", {EKSCTL: "gpu"}, "ip-10-0-0-1"),
        ("eksctl-c-nodegroup-a-nodegroup-gpu-NodeGroup-1A2B3C", {EKSCTL: "gpu"}, "ip-10-0-0-1"),
        ("gke-c-big-gpu-1a2b3c4d-grp", {GKE: "gpu"}, "gke-c-gpu-9f8e7d6c-x1yz"),
        ("gk3-c-big-gpu-1a2b3c4d-grp", {GKE: "gpu"}, "gk3-c-gpu-9f8e7d6c-x1yz"),
        ("shoot--p--c-big-gpu", {GARDENER: "gpu"}, "shoot--p--c-gpu-7b8d4-x1yz2"),
        ("shoot--p--c-gpu", {GARDENER: "gpu-z1"}, "shoot--p--c-gpu-z1-7b8d4-x1yz2"),
        ("big-gpu-1a2b3c4d", {"magnum.openstack.org/nodegroup": "gpu"}, "c-gpu-node-0"),
        ("big-gpu", {"doks.digitalocean.com/node-pool": "gpu"}, "gpu-x1y2z"),
        ("gpu", {}, "gpu-large-1"),
        ("gpu", {}, "gpularge-1"),
        ("gpu", {}, "gpu"),
    ],
)
def test_a_node_of_a_similar_name_belongs_to_no_group(name, labels, node_name) -> None:
    present = node(node_name, 1, labels=labels, unschedulable=True)

    assert look(group(name), nodes=(present,), asked=asks(4)) == MAY


def test_groups_of_one_pool_in_several_zones_are_told_apart_by_their_nodes() -> None:
    pool, ids = {GKE: "gpu"}, ("1a2b3c4d", "5e6f7a8b")
    nodes = [node(f"gke-c-gpu-{it}-aaaa", 1, labels=pool, unschedulable=True) for it in ids]
    full = [group(f"gke-c-gpu-{it}-grp", 1, 1) for it in ids]

    found = look(*full, nodes=tuple(nodes), asked=asks(selector=pool))
    assert why(found) == [WhyNoNode.AT_MAXIMUM, WhyNoNode.AT_MAXIMUM]


def test_a_status_that_cannot_be_read_is_not_a_status_that_is_absent() -> None:
    karpenters = {"metadata": {"name": "k"}, "spec": {"replicas": 1}}
    cloud = node("n", 1, labels={EKS: "gpu"}, unschedulable=True)

    def found(objects: AutoscalerObjects) -> object:
        return outlook(state(cloud), asks(), objects=objects, autoscaling="detect")

    unreadable = autoscalers((karpenters,))
    unreadable.put(Undecodable("ConfigMap", *STATUS, "", "its data is a number"))
    empty = autoscalers((karpenters,))
    meta = {"metadata": {"namespace": STATUS[0], "name": STATUS[1]}}
    empty.put(msgspec.convert(meta, ConfigMap))
    forbidden = autoscalers((karpenters,))
    forbidden.mark_unknown("ConfigMap")

    assert why(found(autoscalers((karpenters,)))) == [WhyNoNode.AT_MAXIMUM]
    for objects in (unreadable, empty, forbidden, autoscalers((karpenters,), status="nonsense")):
        assert found(objects) == MayScaleUp(Source.NODES)


@pytest.mark.parametrize("text", ["nonsense", "x" * 400_001, "", BEFORE_1_30])
def test_groups_whose_status_cant_be_read_may_grow_on_machines_without_a_cloud(text) -> None:
    busy = node("worker", 1, labels={}, unschedulable=True)
    objects = autoscalers(status=text)

    found = outlook(state(busy), asks(), objects=objects, autoscaling="detect")

    assert found == MayScaleUp(Source.UNREAD_STATUS)


def test_groups_that_the_hub_has_seen_may_grow_while_it_cant_read_them() -> None:
    objects = autoscalers(status=status(group("gpu", 0, 1)))
    cluster = Cluster(state(), objects, "detect")
    objects.mark_unknown("ConfigMap")
    objects.remove("ConfigMap", *STATUS)

    assert cluster.outlook(asks()) == MayScaleUp(Source.UNREAD_STATUS)

    objects.mark_known("ConfigMap")  # it was deleted

    assert cluster.outlook(asks()) == CannotScaleUp()


def test_an_old_status_promises_nothing_and_becomes_so_without_a_change() -> None:
    at = datetime.now(UTC) - timedelta(minutes=14)
    text = f"time: {at:%Y-%m-%d %H:%M:%S}.5 +0000 UTC\n{status(group())}"
    cluster = Cluster(state(member()), autoscalers(status=text), "detect")
    before = cluster.to_come.version
    assert isinstance(cluster.outlook(asks()), CanScaleUp)

    cluster.pools._autoscaler._written = at - timedelta(minutes=2)

    assert cluster.to_come.version != before
    assert cluster.outlook(asks()) == MayScaleUp(Source.NODES)

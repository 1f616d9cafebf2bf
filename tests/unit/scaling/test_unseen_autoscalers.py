"""What nodes betray of autoscalers that the hub can't see."""

from __future__ import annotations

import msgspec
import pytest

from gpuspawner.kube.autoscaling import ClusterAutoscaler, MachineAutoscaler
from gpuspawner.kube.objects import convert
from gpuspawner.scaling.outlook import (
    CannotScaleUp,
    MayScaleUp,
    Obstacle,
    Outlook,
    Source,
    WhyNoNode,
)
from gpuspawner.scheduling.verdicts import Subject
from tests.unit.makers.groups import group, status
from tests.unit.makers.outlooks import Cluster, Plain, autoscalers, node, outlook, pod, state

MAY = MayScaleUp(Source.NODES)
KARPENTERS = {"karpenter.sh/nodepool": "gpu"}
EKS = {"eks.amazonaws.com/nodegroup": "core"}
STATIC = {"metadata": {"name": "gpu"}, "spec": {"replicas": 1}}


def busy(name: str, labels: dict[str, str], provider: str = "") -> Plain:
    return node(name, 1, labels=labels, unschedulable=True, providerID=provider)


def look(*nodes: Plain, autoscaling: str = "detect", **objects: object) -> Outlook:
    known = objects.get("known") or autoscalers()
    return outlook(state(*nodes), pod(selector={}), objects=known, autoscaling=autoscaling)  # type: ignore[arg-type]


OF_CLOUDS = (
    "aws:///z/i-1", "gce://p/z/n", "azure:///x", "openstack:///x", "ocid1.instance.oc1.x",
    "cn-hangzhou.i-bp1c5s7hj8z0n3xk4w2y", "qcloud:///300003/ins-bzwza4jk",
    "external-cloudstack://915653c4-298b-4d74-bdee-4ced282114f1",
    "nebius://computeinstance-e00abc",
)  # fmt: skip
OF_ONES_OWN = ("", "k3s://n", "kind://docker/kind/n", "metal3://x", "baremetal://n")


@pytest.mark.parametrize(
    ("provider", "found"),
    [*((it, MAY) for it in OF_CLOUDS), *((it, CannotScaleUp()) for it in OF_ONES_OWN)],
)
def test_a_clouds_pools_may_grow_and_machines_of_ones_own_do_not(provider, found) -> None:
    assert look(busy("n", {}, provider)) == found


@pytest.mark.parametrize(
    "label",
    [
        "eks.amazonaws.com/nodegroup",
        "compute.coreweave.com/node-pool",
        "alibabacloud.com/nodepool-id",
        "cce.cloud.com/cce-nodepool",
        "tke.cloud.tencent.com/nodepool-id",
        "oke.oraclecloud.com/pool.name",
        "worker.gardener.cloud/pool",
        "hypershift.openshift.io/nodePool",
        "crusoe.ai/nodepool.id",
        "provisioner.cast.ai/managed-by",
        "karpenter.sh/nodepool",
    ],
)
def test_labels_of_pools_are_signs(label: str) -> None:
    known = autoscalers()
    known.mark_unknown("NodePool")
    known.mark_unknown("ConfigMap")

    assert look(busy("n", {label: "gpu"}), known=known) == MAY


def machine(**annotations: str) -> Plain:
    """Return a busy node of vSphere, whose provider id is no sign."""
    made = busy("ocp-x7k2p-worker-0-9q4wd", {"node.openshift.io/os_id": "rhcos"}, "vsphere://4216")
    made["metadata"]["annotations"] = annotations
    return made


OPENSHIFT = {"machine.openshift.io/machine": "openshift-machine-api/ocp-x7k2p-worker-0-9q4wd"}
CAPI = {
    "cluster.x-k8s.io/machine": "gpu-md-0-7c9d8-x2k4p",
    "cluster.x-k8s.io/owner-kind": "MachineSet",
    "cluster.x-k8s.io/owner-name": "gpu-md-0-7c9d8",
}


@pytest.mark.parametrize(
    ("annotations", "provider", "found"),
    [
        ({}, "vsphere://4216", CannotScaleUp()),
        (OPENSHIFT, "vsphere://4216", CannotScaleUp()),
        (OPENSHIFT, "aws:///z/i-1", CannotScaleUp()),
        (CAPI, "vsphere://4216", MAY),
    ],
    ids=["nothing", "OpenShift", "OpenShift on a cloud", "Cluster API, wherever its objects are"],
)
def test_machines_may_grow_that_somebody_scales(annotations, provider, found) -> None:
    made = machine(**annotations)
    made["spec"]["providerID"] = provider

    assert look(made) == found


@pytest.mark.parametrize("kind", ["ClusterAutoscaler", "MachineAutoscaler"])
def test_openshifts_machines_may_grow_if_the_hub_does_not_know_that_nobody_scales_them(
    kind: str,
) -> None:
    known = autoscalers()
    known.mark_unknown(kind)

    assert look(machine(**OPENSHIFT), known=known) == MAY


OPENSHIFTS_KINDS = (ClusterAutoscaler, MachineAutoscaler)


@pytest.mark.parametrize("pools", [(), (STATIC,)], ids=["alone", "beside Karpenter"])
def test_objects_of_openshifts_autoscaler_are_signs(pools: tuple[Plain, ...]) -> None:
    known = autoscalers(pools)
    for type_ in OPENSHIFTS_KINDS:
        known.put(msgspec.convert({"metadata": {"name": "default"}}, type_))

    assert look(busy("n", {}), known=known) == MAY


@pytest.mark.parametrize("type_", OPENSHIFTS_KINDS)
def test_one_of_openshifts_objects_without_the_other_scales_nothing(type_: type) -> None:
    known = autoscalers()
    known.put(msgspec.convert({"metadata": {"name": "default"}}, type_))

    assert look(machine(**OPENSHIFT), known=known) == CannotScaleUp()


def test_an_annotation_that_comes_after_the_node_is_a_sign() -> None:
    known = state(machine())
    cluster = Cluster(known, autoscalers(), "detect")
    assert cluster.outlook(pod(selector={})) == CannotScaleUp()

    known.put(convert("Node", machine(**CAPI)))

    assert cluster.outlook(pod(selector={})) == MAY


def test_openshifts_own_startup_taints_go_by_themselves() -> None:
    known = autoscalers()
    plain = {"metadata": {"name": "default"}, "spec": {"startupTaints": ["example.com/warming"]}}
    known.put(msgspec.convert(plain, ClusterAutoscaler))

    assert known.startup_taints == {"example.com/warming"}


# Pools that don't exist yet

NAP = {"cloud.google.com/gke-nodepool": "nap-1acv0bno"}
L4 = {"cloud.google.com/gke-accelerator": "nvidia-l4"}


def on_gke() -> Cluster:
    """A GKE cluster whose status lists one pool for CPUs, as node auto-provisioning made it."""
    name = "gke-c-nap-1acv0bno-3f2a1b4c"
    known = state(node(f"{name}-x1yz", 0, labels=NAP, providerID="gce://p/europe-north1-c/n"))
    return Cluster(known, autoscalers(status=status(group(f"{name}-grp", 1, 1000))), "detect")


def test_on_gke_a_pool_for_a_pod_may_come_although_the_status_lists_only_others() -> None:
    assert on_gke().outlook(pod(selector=L4)) == MAY


def test_the_autoscalers_own_no_about_pools_to_come_is_remembered() -> None:
    cluster, no = on_gke(), Obstacle(WhyNoNode.NO_SUCH_MACHINE, detail="1 node(s) didn't match")
    cluster.to_come.remember(Subject(pod(selector=L4)), Source.CLUSTER_AUTOSCALER, no)

    assert no in cluster.outlook(pod("b", selector=L4)).obstacles
    assert cluster.outlook(pod("b", gpus=2, selector=L4)) == MAY


def test_silence_about_pools_to_come_is_remembered() -> None:
    cluster, silence = on_gke(), Obstacle(WhyNoNode.NO_ANSWER)
    cluster.to_come.remember(Subject(pod(selector=L4)), None, silence)

    assert isinstance(cluster.outlook(pod("b", selector=L4)), CannotScaleUp)


def test_no_pool_comes_for_a_pod_that_names_its_pool() -> None:
    assert isinstance(on_gke().outlook(pod(selector=NAP)), CannotScaleUp)


@pytest.mark.parametrize("label", ["provisioner.cast.ai/managed-by", "spotinst.io/node-lifecycle"])
def test_who_adds_nodes_without_pools_is_not_bound_by_full_groups(label: str) -> None:
    full = autoscalers(status=status(group("core", 1, 1)))

    assert look(busy("core-1", {}), known=full) != MAY
    nodes = busy("core-1", {}), busy("x", {label: "cast.ai"})
    assert look(*nodes, known=full) == MAY


FULL_GROUPS = autoscalers(status=status(group("core", 1, 1)))
UNREAD_POOLS = autoscalers()
UNREAD_POOLS.mark_unknown("NodePool")
UNREAD_STATUS = autoscalers((STATIC,))
UNREAD_STATUS.mark_unknown("ConfigMap")
OF_EKS, OF_KARPENTER = busy("core-1", EKS, "aws:///z/i-1"), busy("k", KARPENTERS, "aws:///z/i-1")
AT_MAXIMUM = CannotScaleUp((Obstacle(WhyNoNode.AT_MAXIMUM, "core", nodes=1),))
IS_STATIC = CannotScaleUp((Obstacle(WhyNoNode.AT_MAXIMUM, "gpu", nodes=1),))

HIDDEN = {
    "full groups of a cloud are a no at once": ([OF_EKS], FULL_GROUPS, AT_MAXIMUM),
    "Karpenter's nodes say nothing if its pools are known": (
        [OF_KARPENTER], autoscalers(), CannotScaleUp()
    ),
    "Karpenter's nodes are signs if its pools may not be listed": (
        [OF_KARPENTER], UNREAD_POOLS, MAY
    ),
    "pools that may not be listed may grow without any node": (
        [busy("n", {})], UNREAD_POOLS, MayScaleUp(Source.UNREAD)
    ),
    "the first node doesn't hide the signs of others": ([OF_KARPENTER, OF_EKS], UNREAD_STATUS, MAY),
    "nor does the last": ([OF_EKS, OF_KARPENTER], UNREAD_STATUS, MAY),
    "Karpenter alone is known to be alone": ([OF_EKS], autoscalers((STATIC,)), IS_STATIC),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "known", "found"), HIDDEN.values(), ids=HIDDEN)
def test_what_the_hub_cannot_see_may_grow(nodes, known, found) -> None:
    assert look(*nodes, known=known) == found


@pytest.mark.parametrize(
    ("autoscaling", "found"),
    [("none", CannotScaleUp()), ("always", MayScaleUp(Source.CONFIGURATION))],
)
def test_the_configuration_may_say_that_nothing_grows_or_that_a_node_may_come(
    autoscaling, found
) -> None:
    assert look(OF_EKS, known=FULL_GROUPS, autoscaling=autoscaling) == found

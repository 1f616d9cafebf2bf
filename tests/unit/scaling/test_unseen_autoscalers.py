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


@pytest.mark.parametrize(
    "provider",
    ["", "k3s://n", "kind://docker/kind/n", "metal3://x", "baremetal://n"],
)
def test_machines_of_ones_own_do_not_grow(provider: str) -> None:
    assert look(busy("n", {}, provider)) == CannotScaleUp()


@pytest.mark.parametrize(
    "provider",
    [
        "aws:///z/i-1",
        "gce://p/z/n",
        "azure:///x",
        "openstack:///x",
        "ocid1.instance.oc1.x",
        "cn-hangzhou.i-bp1c5s7hj8z0n3xk4w2y",
        "qcloud:///300003/ins-bzwza4jk",
        "external-cloudstack://915653c4-298b-4d74-bdee-4ced282114f1",
        "nebius://computeinstance-e00abc",
    ],
)
def test_a_clouds_pools_may_grow(provider: str) -> None:
    assert look(busy("n", {}, provider)) == MAY


@pytest.mark.parametrize(
    "labels",
    [
        EKS,
        {"compute.coreweave.com/node-pool": "l40"},
        {"alibabacloud.com/nodepool-id": "np496f712af36a449db6e3e148a9308190"},
        {"cce.cloud.com/cce-nodepool": "gpu"},
        {"tke.cloud.tencent.com/nodepool-id": "np-p8uyib3x"},
        {"oke.oraclecloud.com/pool.name": "oke-gpu"},
        {"worker.gardener.cloud/pool": "gpu"},
        {"hypershift.openshift.io/nodePool": "gpu"},
        {"crusoe.ai/nodepool.id": "9a"},
        {"provisioner.cast.ai/managed-by": "cast.ai"},
        {"karpenter.sh/nodepool": "gpu"},
    ],
    ids=lambda it: next(iter(it)),
)
def test_labels_of_pools_are_signs(labels: dict[str, str]) -> None:
    known = autoscalers()
    known.mark_unknown("NodePool")
    known.mark_unknown("ConfigMap")

    assert look(busy("n", labels), known=known) == MAY


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


def test_machines_that_nobody_scales_do_not_grow() -> None:
    assert look(machine()) == CannotScaleUp()
    assert look(machine(**OPENSHIFT)) == CannotScaleUp()


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


def test_openshifts_machines_that_nobody_scales_do_not_grow_on_a_cloud_either() -> None:
    made = machine(**OPENSHIFT)
    made["spec"]["providerID"] = "aws:///z/i-1"

    assert look(made) == CannotScaleUp()


def test_an_annotation_that_comes_after_the_node_is_a_sign() -> None:
    known = state(machine())
    cluster = Cluster(known, autoscalers(), "detect")
    assert cluster.outlook(pod(selector={})) == CannotScaleUp()

    known.put(convert("Node", machine(**CAPI)))

    assert cluster.outlook(pod(selector={})) == MAY


def test_machines_of_cluster_api_may_grow_wherever_its_objects_are() -> None:
    assert look(machine(**CAPI)) == MAY


def test_openshifts_own_startup_taints_go_by_themselves() -> None:
    known = autoscalers()
    plain = {"metadata": {"name": "default"}, "spec": {"startupTaints": ["example.com/warming"]}}
    known.put(msgspec.convert(plain, ClusterAutoscaler))

    assert known.startup_taints == {"example.com/warming"}


# Pools that don't exist yet

NAP = {"cloud.google.com/gke-nodepool": "nap-1acv0bno"}
L4 = {"cloud.google.com/gke-accelerator": "nvidia-l4"}


def on_gke(autoscaling: str = "detect") -> Cluster:
    """A GKE cluster whose status lists one pool for CPUs, as node auto-provisioning made it."""
    name = "gke-c-nap-1acv0bno-3f2a1b4c"
    known = state(node(f"{name}-x1yz", 0, labels=NAP, providerID="gce://p/europe-north1-c/n"))
    return Cluster(known, autoscalers(status=status(group(f"{name}-grp", 1, 1000))), autoscaling)


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


def test_none_and_always_decide_about_pools_to_come() -> None:
    assert isinstance(on_gke("none").outlook(pod(selector=L4)), CannotScaleUp)
    assert on_gke("always").outlook(pod(selector=L4)) == MayScaleUp(Source.CONFIGURATION)


def test_no_pool_comes_for_a_pod_that_names_its_pool() -> None:
    assert isinstance(on_gke().outlook(pod(selector=NAP)), CannotScaleUp)


@pytest.mark.parametrize("label", ["provisioner.cast.ai/managed-by", "spotinst.io/node-lifecycle"])
def test_who_adds_nodes_without_pools_is_not_bound_by_full_groups(label: str) -> None:
    full = autoscalers(status=status(group("core", 1, 1)))

    assert look(busy("core-1", {}), known=full) != MAY
    nodes = busy("core-1", {}), busy("x", {label: "cast.ai"})
    assert look(*nodes, known=full) == MAY


def test_full_groups_of_a_cloud_without_such_a_program_are_a_no_at_once() -> None:
    full = autoscalers(status=status(group("core", 1, 1)))

    assert isinstance(look(busy("core-1", EKS, "aws:///z/i-1"), known=full), CannotScaleUp)


def test_none_means_that_nothing_grows() -> None:
    assert look(busy("n", EKS), autoscaling="none") == CannotScaleUp()


def test_always_means_that_a_node_may_come() -> None:
    assert look(autoscaling="always") == MayScaleUp(Source.CONFIGURATION)


def test_karpenters_own_nodes_say_nothing_if_its_pools_are_known() -> None:
    assert isinstance(look(busy("n", KARPENTERS, "aws:///z/i-1")), CannotScaleUp)


def test_karpenters_nodes_are_signs_if_its_pools_may_not_be_listed() -> None:
    objects = autoscalers()
    objects.mark_unknown("NodePool")

    assert look(busy("n", KARPENTERS), known=objects) == MAY


def test_pools_that_may_not_be_listed_may_grow_without_any_node() -> None:
    objects = autoscalers()
    objects.mark_unknown("NodePool")

    assert look(busy("n", {}), known=objects) == MayScaleUp(Source.UNREAD)


@pytest.mark.parametrize("order", [1, -1])
def test_the_first_node_does_not_hide_the_signs_of_the_others(order: int) -> None:
    nodes = [busy("k", KARPENTERS), busy("m", EKS)][::order]
    objects = autoscalers((STATIC,))
    objects.mark_unknown("ConfigMap")

    assert look(*nodes, known=objects) == MAY


def test_karpenter_alone_is_known_to_be_alone() -> None:
    assert isinstance(look(busy("m", EKS), known=autoscalers((STATIC,))), CannotScaleUp)


def test_groups_that_are_known_leave_nothing_hidden() -> None:
    status = (
        "autoscalerStatus: Running\nnodeGroups:\n- name: core\n"
        "  health: {cloudProviderTarget: 1, maxSize: 1}\n"
    )
    nodes = [busy("core-1", {**EKS}, "aws:///z/i-1")]

    assert isinstance(look(*nodes, known=autoscalers(status=status)), CannotScaleUp)

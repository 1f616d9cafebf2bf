from typing import Any

import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling import ClusterState, Outcome, Rules, Unknown, Why, evaluate
from gpuspawner.scheduling.could_hold import reach
from gpuspawner.scheduling.evaluate import lacks_node
from gpuspawner.scheduling.failures import NoStorage
from tests.unit.makers import worlds
from tests.unit.makers.objects import answer, cluster, node, pod
from tests.unit.makers.storage import NOW, WAIT, claim, uses

ONE = {"gpu": "1"}
DAEMON = {"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}
STATIC = {"annotations": {"kubernetes.io/config.mirror": "x"}}


def old(**fields):
    return pod("old", node="a", requests=ONE, **fields)


@pytest.mark.parametrize(
    ("metadata", "busy"),
    [({}, ("a",)), (DAEMON, ()), (STATIC, ())],
    ids=["a server", "daemon", "static"],
)
def test_resources_of_pods_that_can_end_are_busy_and_of_others_impossible(metadata, busy):
    verdict = answer(pod(requests=ONE), node(gpu="1"), pods=[old(metadata=metadata)])
    assert (verdict.busy, verdict.away) == (busy, ())
    assert verdict.outcome is (Outcome.BUSY if busy else Outcome.IMPOSSIBLE)


@pytest.mark.parametrize(
    "away",
    [
        node(gpu="1", unschedulable=True),
        node(gpu="1", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]),
        node(gpu="1", taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]),
        node(gpu="0", capacity={"nvidia.com/gpu": "1"}),
    ],
)
def test_a_pod_that_needs_an_away_node_is_busy_and_not_impossible(away):
    verdict = answer(pod(requests=ONE), away)
    assert (verdict.outcome, verdict.busy, verdict.away) == (Outcome.BUSY, (), ("a",))


@pytest.mark.parametrize(
    "never",
    [
        node(gpu="1", unschedulable=True, taints=[{"key": "team", "effect": "NoSchedule"}]),
        node(gpu="0", unschedulable=True),
    ],
    ids=["for another team", "too small"],
)
def test_an_away_node_that_could_never_hold_the_pod_is_impossible(never):
    assert answer(pod(requests=ONE), never).outcome is Outcome.IMPOSSIBLE


def test_a_host_port_used_by_a_pod_that_never_ends_is_impossible():
    port = [{"name": "c", "ports": [{"hostPort": 80}]}]
    for metadata, outcome in ((DAEMON, Outcome.IMPOSSIBLE), ({}, Outcome.BUSY)):
        there = pod("old", node="a", containers=port, metadata=metadata)
        assert answer(pod(containers=port), node(), pods=[there]).outcome is outcome


def test_a_request_above_every_node_is_impossible_even_without_known_pods():
    assert answer(pod(requests={"gpu": "9"}), node(gpu="8"), pods=None).outcome is (
        Outcome.IMPOSSIBLE
    )
    assert answer(pod(requests=ONE), node(gpu="8"), pods=None).outcome is Outcome.UNKNOWN


def test_a_cluster_without_nodes_holds_nothing():
    verdict = answer(pod())
    assert verdict.outcome is Outcome.IMPOSSIBLE
    assert verdict.message == "no nodes available to schedule pods"
    assert verdict.condition_message == verdict.message


SELECTED = claim(annotations={"volume.kubernetes.io/selected-node": "b"})
"""A claim whose volume is being made for a pod that had node b."""


def test_a_no_is_unknown_while_the_volume_is_being_made_for_the_node_of_an_earlier_pod():
    def asked(**objects):
        nodes = node(gpu="1"), node("b", gpu="0")
        known = {"persistentVolumeClaims": [SELECTED], "storageClasses": [WAIT], **objects}
        asks = pod(requests=ONE, **uses("home"))
        verdict = answer(asks, *nodes, **known)
        lacks = lacks_node(cluster(*nodes, **known), convert("Pod", asks))
        assert lacks == verdict.lacks_node
        return verdict

    verdict = asked()
    assert (verdict.outcome, verdict.unknown) == (
        Outcome.UNKNOWN,
        (Unknown(Why.NEW_VOLUME, "home", may_admit=True),),
    )
    in_use = asked(pods=[old()])
    assert (in_use.outcome, in_use.busy) == (Outcome.BUSY, ("a",))
    assert asked(pods=[old(metadata=DAEMON)]).outcome is Outcome.IMPOSSIBLE


def test_storage_for_an_ephemeral_volume_may_come_back_and_for_a_lasting_one_may_not():
    template = {"volumeClaimTemplate": {"spec": claim()["spec"]}}
    scratch = {"volumes": [{"name": "scratch", "ephemeral": template}]}
    full = {
        "persistentVolumeClaims": [claim()],
        "storageClasses": [WAIT],
        "csiDrivers": [{"metadata": {"name": "csi"}, "spec": {"storageCapacity": True}}],
    }
    verdict = answer(pod(**scratch), node(), **full)
    assert verdict.failures["a"] == (NoStorage("new-scratch"),)
    assert (verdict.outcome, verdict.busy) == (Outcome.BUSY, ("a",))
    assert answer(pod(**uses("home")), node(), **full).outcome is Outcome.IMPOSSIBLE
    owner = {"kind": "Pod", "name": "new", "uid": "uid-new", "controller": True}
    full["persistentVolumeClaims"] = [claim("new-scratch", ownerReferences=[owner])]
    assert answer(pod(**scratch), node(), **full).outcome is Outcome.BUSY


# Where a pod could run if others ended.

HOME = [{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}]
STATE = ClusterState.from_objects(
    nodes=[
        worlds.node("free", 2),
        worlds.node("full", 1),
        worlds.node("away", 2, unschedulable=True),
    ],
    pods=[worlds.pod("x", 1, on="full")],
)


def nodes_for(state: ClusterState = STATE, claims: Any = (), **spec: Any) -> frozenset[str]:
    wanted = convert("Pod", worlds.pod("new", spec.pop("gpus", 1), **spec))
    assert isinstance(wanted, Pod)
    return reach(state, wanted, claims)


def test_all_nodes_count_that_have_enough_also_if_it_fits_on_one_now() -> None:
    assert nodes_for() == {"free", "full"}
    assert nodes_for(gpus=2) == {"free"}
    assert nodes_for(gpus=3) == frozenset()


def test_nodes_that_the_pod_may_not_use_dont_count() -> None:
    assert nodes_for(nodeSelector={"gpu": "t4"}) == frozenset()
    assert nodes_for(nodeSelector={"gpu": "a100"}) == {"free", "full"}


def test_a_node_counts_whose_driver_may_serve_the_devices() -> None:
    class_ = {"metadata": {"name": "g"}, "spec": {"extendedResourceName": worlds.GPU}}
    state = ClusterState.from_objects(
        nodes=[worlds.node("plugin", 1), worlds.node("claims", 0)], pods=[], deviceClasses=[class_]
    )
    assert nodes_for(state) == {"plugin", "claims"}
    assert nodes_for(state, gpus=2) == {"claims"}


def test_a_toleration_opens_no_node_to_a_version_that_does_not_compare() -> None:
    taint = {"key": "sla", "value": "950", "effect": "NoSchedule"}
    rules = Rules.of_version("v1.34.4")
    state = ClusterState.from_objects(
        nodes=[worlds.node("a", 1, taints=[taint])], pods=[], rules=rules
    )
    assert nodes_for(state, tolerations=[{"key": "sla", "operator": "Gt", "value": "9"}]) == set()


def test_a_claim_that_the_hub_may_not_read_keeps_the_pod_off_no_node() -> None:
    full = ClusterState.from_objects(
        nodes=[worlds.node("full", 1)], pods=[worlds.pod("x", 1, on="full")]
    )
    wanted = worlds.pod("new", volumes=HOME)
    assert evaluate(full, wanted).busy == ("full",)
    assert nodes_for(full, volumes=HOME) == {"full"}


@pytest.mark.parametrize(
    "claims",
    [
        [claim(class_="now", namespace=worlds.NAMESPACE)],
        [claim(class_="", namespace=worlds.NAMESPACE)],
        [],
    ],
    ids=["by its class", "by hand", "once a hook has made it"],
)
def test_a_claim_that_may_soon_be_bound_keeps_the_pod_off_no_node(claims) -> None:
    state = ClusterState.from_objects(
        nodes=[worlds.node("free", 2)],
        pods=[],
        persistentVolumeClaims=claims,
        persistentVolumes=[],
        storageClasses=[NOW],
    )
    assert nodes_for(state, volumes=HOME) == {"free"}


def test_a_pod_or_a_claim_that_nobody_understands_reaches_nothing() -> None:
    assert nodes_for(claims=[{"spec": "none"}]) == frozenset()
    odd = {"operator": "Near", "key": "gpu"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [odd]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert nodes_for(affinity=affinity) == frozenset()

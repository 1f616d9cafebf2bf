import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling import Outcome, Unknown, Why
from gpuspawner.scheduling.evaluate import lacks_node
from gpuspawner.scheduling.failures import NoStorage
from tests.unit.makers.objects import answer, cluster, node, pod
from tests.unit.makers.storage import WAIT, claim, uses

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

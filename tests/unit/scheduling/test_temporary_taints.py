"""Nodes whose taints go by themselves."""

from __future__ import annotations

import pytest

from gpuspawner.scheduling import ClusterState, Outcome, evaluate
from gpuspawner.scheduling.temporary_taints import is_temporary
from tests.unit.makers.objects import answer, node, pod

ONE = {"gpu": "1"}


def tainted(key: str, effect: str = "NoSchedule") -> dict[str, object]:
    return node(gpu="1", taints=[{"key": key, "value": "true", "effect": effect}])


@pytest.mark.parametrize(
    "key",
    [
        "node.cilium.io/agent-not-ready",
        "ebs.csi.aws.com/agent-not-ready",
        "efs.csi.aws.com/agent-not-ready",
        "azurelustre.csi.azure.com/agent-not-ready",
        "cni.istio.io/not-ready",
        "node.gardener.cloud/critical-components-not-ready",
        "git-cache-not-ready",
        "readiness.k8s.io/NetworkReady",
        "startup-taint.cluster-autoscaler.kubernetes.io/auditd",
        "ignore-taint.cluster-autoscaler.kubernetes.io/x",
        "node.cluster.x-k8s.io/uninitialized",
        "node.deckhouse.io/csi-not-bootstrapped",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "tke.cloud.tencent.com/eni-ip-unavailable",
        "k8s.ovn.org/network-unavailable",
        "remediator.kubernetes.azure.com/unschedulable",
        "autoscaling.cast.ai/draining",
        "medik8s.io/remediation",
        "nidhogg.uswitch.com/kube-system.kube-multus-ds",
        "nodewright.nvidia.com",
        "karpenter.sh/unregistered",
        "karpenter.sh/disruption",
        "cloud.google.com/impending-node-termination",
        "aws-node-termination-handler/spot-itn",
    ],
)
def test_a_node_whose_taint_goes_by_itself_is_away_and_not_reserved(key: str) -> None:
    verdict = answer(pod(requests=ONE), tainted(key, "NoExecute"))

    assert (verdict.outcome, verdict.away) == (Outcome.BUSY, ("a",))


@pytest.mark.parametrize(
    "key", ["nvidia.com/gpu", "hub.jupyter.org/dedicated", "sku", "is-ready", "readiness"]
)
def test_a_taint_of_somebody_who_keeps_the_node_for_others_stays(key: str) -> None:
    assert not is_temporary(key)
    assert answer(pod(requests=ONE), tainted(key)).outcome is Outcome.IMPOSSIBLE


def test_what_an_autoscaler_calls_a_startup_taint_is_one_until_it_says_so_no_more() -> None:
    state = ClusterState.from_objects(nodes=[tainted("example.com/warming")], pods=[])

    def away() -> tuple[str, ...]:
        return evaluate(state, pod(requests=ONE)).away

    assert away() == ()
    for keys, expected in ((frozenset({"example.com/warming"}), ("a",)), (frozenset(), ())):
        before = state.version
        state.expect(keys)
        assert state.version > before
        state.expect(keys)
        assert state.version == before + 1
        assert away() == expected

"""Taints that go by themselves: once a node is ready or healthy again, or with the node.

Sources: ``well_known_taints.go`` of k8s.io/api and k8s.io/cloud-provider (v0.36.2), Cluster
Autoscaler's ``utils/taints/taints.go`` (1.36), Karpenter's ``pkg/apis/v1/taints.go`` and
``pkg/scheduling/taints.go`` (v1.15.0; ``karpenter.sh/disruption`` is that of v1beta1), AWS's
node-termination-handler (``pkg/node/node.go``), Nidhogg, Deckhouse, and NVIDIA's NodeWright, once
Skyhook (``runtimeRequiredTaint``).
"""

LEAVING = frozenset(
    {
        "ToBeDeletedByClusterAutoscaler", "cloud.google.com/impending-node-termination",
        "karpenter.sh/disrupted", "karpenter.sh/disruption", "autoscaling.cast.ai/draining",
    }
)  # fmt: skip
"""What is put on a node that is about to be deleted."""

_KEYS = LEAVING | {
    "node.kubernetes.io/unreachable", "node.kubernetes.io/out-of-service",
    "node.kubernetes.io/memory-pressure", "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure", "node.cloudprovider.kubernetes.io/shutdown",
    "DeletionCandidateOfClusterAutoscaler", "NodeWithImpairedVolumes", "karpenter.sh/unregistered",
    "nodewright.nvidia.com", "skyhook.nvidia.com", "medik8s.io/remediation",
}  # fmt: skip

_STARTS = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
    "status-taint.cluster-autoscaler.kubernetes.io/",
    "aws-node-termination-handler/", "nidhogg.uswitch.com/", "readiness.k8s.io/",
)  # fmt: skip

# By these ends, those who put a taint on a node until their part of it is ready name it: the
# kubelet, networks (node.cilium.io/agent-not-ready, cni.istio.io/not-ready), CSI drivers
# (ebs.csi.aws.com/agent-not-ready), clouds (node.cloudprovider.kubernetes.io/uninitialized,
# tke.cloud.tencent.com/eni-ip-unavailable, remediator.kubernetes.azure.com/unschedulable) and
# programs that manage machines (node.gardener.cloud/critical-components-not-ready).
_ENDS = ("not-ready", "not-bootstrapped", "uninitialized", "unavailable", "/unschedulable")


def is_temporary(key: str) -> bool:
    """Whether a taint with this key goes by itself."""
    return key in _KEYS or key.startswith(_STARTS) or key.endswith(_ENDS)

"""What the nodes betray of an autoscaler that the hub can't see.

On a cloud's managed Kubernetes, a pool may grow although nothing in the cluster says so. Sources:
the clouds' documentation of node labels and provider ids.
"""

from collections.abc import Iterable

from gpuspawner.scaling.cluster_autoscaler import POOL_LABELS
from gpuspawner.scaling.karpenter_nodes import POOL as KARPENTER_POOL
from gpuspawner.scaling.outlook import Source
from gpuspawner.scheduling.node_info import NodeInfo

# Clouds whose pools can grow, by the scheme of ``spec.providerID``.
_CLOUDS = frozenset(
    {
        "aws", "azure", "civo", "digitalocean", "exoscale", "gce", "hcloud", "ibm", "ionos",
        "linode", "oci", "ocid1", "openstack", "ovh", "scaleway", "vultr",
    }
)  # fmt: skip


def traces(nodes: Iterable[NodeInfo]) -> frozenset[Source]:
    """Return the autoscalers that nodes hint at; any but Karpenter counts as Cluster Autoscaler."""
    return frozenset(found for node in nodes if (found := _trace(node)))


def _trace(node: NodeInfo) -> Source | None:
    if KARPENTER_POOL in node.labels:
        return Source.KARPENTER
    provider = node.node.spec.provider_id if node.node else ""
    scheme = provider.partition("://")[0] if "://" in provider else provider.partition(".")[0]
    is_in_pool = any(label in node.labels for label in POOL_LABELS)
    return Source.CLUSTER_AUTOSCALER if is_in_pool or scheme in _CLOUDS else None

"""Which autoscalers the cluster may have, no matter whether the hub may read their objects."""

from collections.abc import Iterable

from gpuspawner.cluster.client import Client
from gpuspawner.cluster.kinds import AUTOSCALER_STATUS, KARPENTER_API, KARPENTER_KINDS, Kind
from gpuspawner.scaling.outlook import Source
from gpuspawner.scaling.traces import traces
from gpuspawner.scheduling.node_info import NodeInfo

_PATIENCE = 5.0


async def kinds(client: Client, nodes: Iterable[NodeInfo]) -> tuple[Kind, ...]:
    """Return the kinds of objects that tell about the cluster's autoscalers.

    Who may not read Karpenter's objects can still see that the API server has this API. Cluster
    Autoscaler shows itself only by the nodes.
    """
    found = traces(nodes)
    has_karpenter = Source.KARPENTER in found or await client.serves(KARPENTER_API, _PATIENCE)
    has_groups = Source.CLUSTER_AUTOSCALER in found
    return (
        *(KARPENTER_KINDS if has_karpenter else ()),
        *((AUTOSCALER_STATUS,) if has_groups else ()),
    )

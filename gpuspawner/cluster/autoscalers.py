"""Which autoscalers the cluster may have, no matter whether the hub may read their objects."""

from collections.abc import Iterable

from gpuspawner.cluster.client import Client
from gpuspawner.cluster.kinds import KARPENTER_KINDS, MACHINE_KINDS, ObjectKind, status_at
from gpuspawner.scaling.outlook import Source
from gpuspawner.scaling.unseen_autoscalers import signs
from gpuspawner.scheduling.node_info import NodeInfo

_PATIENCE = 5.0


async def kinds(client: Client, nodes: Iterable[NodeInfo], status: str) -> tuple[ObjectKind, ...]:
    """Return the kinds of objects that tell about the cluster's autoscalers.

    A hub that may not read Karpenter's objects can still see that the API server has this API.
    Others show themselves only by the nodes. Cluster Autoscaler's *status* is ``namespace/name``.
    """
    found = signs(nodes)
    sources = {it.source for it in found}
    has_karpenter = Source.KARPENTER in sources or await client.serves(
        KARPENTER_KINDS[0].group, _PATIENCE
    )
    return (
        *(KARPENTER_KINDS if has_karpenter else ()),
        *(it for it in MACHINE_KINDS if any(it.name in sign.kinds for sign in found)),
        *((status_at(status),) if Source.CLUSTER_AUTOSCALER in sources else ()),
    )

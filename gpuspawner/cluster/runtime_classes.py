"""Which RuntimeClasses the cluster has. The hub asks once: they hardly ever change."""

import msgspec

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.kube.meta import BareMeta

PATH = "/apis/node.k8s.io/v1/runtimeclasses"
_PATIENCE = 5.0


class _Class(msgspec.Struct):
    metadata: BareMeta = BareMeta()


class _List(msgspec.Struct):
    items: list[_Class] = []


async def runtime_classes(client: Client) -> frozenset[str]:
    """Return their names; none if the API server doesn't tell them."""
    try:
        async with client.get(PATH, {}, _PATIENCE) as response:
            listed = msgspec.json.decode(await response.read(), type=_List)
    except (RequestError, msgspec.MsgspecError):
        return frozenset()
    return frozenset(it.metadata.name for it in listed.items)

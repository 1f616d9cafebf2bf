"""Objects that the view doesn't follow: they hardly ever change, or only the doctor needs them."""

import msgspec

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.kube.meta import BareMeta, KubeStruct

RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_PATIENCE = 5.0


class _Spec(KubeStruct, frozen=True):
    driver: str = ""
    node_name: str = ""


class _Object(KubeStruct, frozen=True):
    metadata: BareMeta = BareMeta()
    spec: _Spec = _Spec()


class _List(KubeStruct, frozen=True):
    items: tuple[_Object, ...] = ()


async def runtime_classes(client: Client) -> frozenset[str]:
    """Return the names of the RuntimeClasses; none if the API server doesn't tell them."""
    return frozenset(it.metadata.name for it in await _listed(client, RUNTIME_CLASSES))


async def claim_drivers(client: Client) -> frozenset[tuple[str, str]]:
    """Return the nodes on which drivers serve claims, each with a driver, if they are told."""
    return frozenset((it.spec.node_name, it.spec.driver) for it in await _listed(client, SLICES))


async def _listed(client: Client, path: str) -> tuple[_Object, ...]:
    try:
        async with client.get(path, {}, _PATIENCE) as response:
            return msgspec.json.decode(await response.read(), type=_List).items
    except (RequestError, msgspec.MsgspecError):
        return ()

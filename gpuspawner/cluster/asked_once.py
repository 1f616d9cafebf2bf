"""Objects that the view doesn't follow: they hardly ever change, or only the doctor needs them."""

from typing import TypeVar

import msgspec

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.kube.meta import BareMeta, KubeStruct

RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_PATIENCE = 5.0
_T = TypeVar("_T")


class _Class(KubeStruct, frozen=True):
    metadata: BareMeta = BareMeta()


class _SliceSpec(KubeStruct, frozen=True):
    driver: str = ""
    node_name: str = ""


class _Slice(KubeStruct, frozen=True):
    spec: _SliceSpec = _SliceSpec()


async def runtime_classes(client: Client) -> frozenset[str]:
    """Return the names of the RuntimeClasses; none if the API server doesn't tell them."""
    return frozenset(it.metadata.name for it in await _items(client, RUNTIME_CLASSES, _Class))


async def claim_drivers(client: Client) -> frozenset[tuple[str, str]]:
    """Return the nodes on which drivers serve claims, each with a driver, if they are told."""
    slices = await _items(client, _SLICES, _Slice)
    return frozenset((it.spec.node_name, it.spec.driver) for it in slices)


async def _items(client: Client, path: str, of: type[_T]) -> list[_T]:
    try:
        async with client.get(path, {}, _PATIENCE) as response:
            answer = msgspec.json.decode(await response.read(), type=dict[str, msgspec.Raw])
        return msgspec.json.decode(answer.get("items", b"[]"), type=list[of])  # type: ignore[valid-type]
    except (RequestError, msgspec.MsgspecError):
        return []

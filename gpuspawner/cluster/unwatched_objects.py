"""Objects that the view doesn't follow: they hardly ever change, or only the doctor needs them."""

import asyncio
import time
from contextlib import suppress

import msgspec

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.cluster.retries import REFUSALS, Backoff
from gpuspawner.kube.meta import BareMeta, KubeStruct

RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
_PATIENCE = 5.0
_LONGEST_WAIT = 30.0
"""How long somebody may wait for RuntimeClasses after the hub has begun to ask, in seconds."""


class _Spec(KubeStruct, frozen=True):
    driver: str = ""
    node_name: str = ""


class _Object(KubeStruct, frozen=True):
    metadata: BareMeta = BareMeta()
    spec: _Spec = _Spec()


class _List(KubeStruct, frozen=True):
    items: tuple[_Object, ...] = ()


class RuntimeClasses:
    """The RuntimeClasses that the cluster has when the hub starts.

    An API server that doesn't answer, or is starting and forbids everything, says nothing of them.
    So the hub asks until it does.

    Attributes:
        names: Their names; none until the API server tells them.
    """

    def __init__(self, client: Client, backoff: Backoff | None = None) -> None:
        self.names: frozenset[str] = frozenset()
        self._client = client
        self._backoff = backoff or Backoff().unhurried()
        self._settled = asyncio.Event()

    async def learn(self) -> None:
        """Ask until there is an answer."""
        began, failures, is_told = time.monotonic(), 0, False
        while not is_told:
            try:
                self.names = _names(await _listed(self._client, RUNTIME_CLASSES))
                is_told = True
            except RequestError as error:
                failures += 1
                # The hub may lack the right for good.
                if error.status in REFUSALS or time.monotonic() - began >= _LONGEST_WAIT:
                    self._settled.set()
                seconds = self._backoff.after(error).before_retry(failures)
                await asyncio.sleep(max(error.retry_after, seconds))
        self._settled.set()

    @property
    def is_settled(self) -> bool:
        """Whether nobody should wait for the names: they are known, or may never be."""
        return self._settled.is_set()

    async def settled(self, patience: float) -> None:
        """Wait until nobody should wait any longer, at most *patience* seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), patience)


async def runtime_classes(client: Client) -> frozenset[str]:
    """Return the names of the RuntimeClasses; none if the API server doesn't tell them."""
    with suppress(RequestError):
        return _names(await _listed(client, RUNTIME_CLASSES))
    return frozenset()


async def claim_drivers(client: Client) -> frozenset[tuple[str, str]]:
    """Return the nodes on which drivers serve claims, each with a driver, if they are told."""
    with suppress(RequestError):
        slices = await _listed(client, SLICES)
        return frozenset((it.spec.node_name, it.spec.driver) for it in slices)
    return frozenset()


def _names(things: tuple[_Object, ...]) -> frozenset[str]:
    return frozenset(it.metadata.name for it in things)


async def _listed(client: Client, path: str) -> tuple[_Object, ...]:
    async with client.get(path, {}, _PATIENCE) as response:
        body = await response.read()
    try:
        return msgspec.json.decode(body, type=_List).items
    except msgspec.MsgspecError as error:
        raise RequestError(f"the answer is no Kubernetes list: {error}") from None

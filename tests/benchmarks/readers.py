"""Ways to read all nodes and pods of a cluster; `measured` runs each in its own process.

`python -m tests.benchmarks.readers NAME KUBECONFIG` prints the figures as JSON.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration, CoreV1Api

from gpuspawner.cluster.client import Client
from gpuspawner.cluster.kinds import NODES, PODS
from gpuspawner.cluster.view import ClusterView
from tests.benchmarks.evaluation import resident

PAGE = 500
TYPED = 10_000


@dataclass(frozen=True)
class Figures:
    """The cost of reading a cluster.

    Attributes:
        seconds: By the clock.
        processor: Processor time of this process, in seconds.
        stall: The longest stall of the event loop in milliseconds, by the clock.
        held: The same in processor time, so without other processes.
        kept: Growth of resident memory by the end, in bytes.
        peak: The largest growth of resident memory meanwhile, in bytes.
        objects: The number of objects.
    """

    seconds: float
    processor: float
    stall: float
    held: float
    kept: int
    peak: int
    objects: int


class Ticker:
    """A task on the same event loop that measures how long it is kept waiting.

    Attributes:
        stall: The longest, in ms by the clock.
        held: The longest, in ms of processor time.
        holds: All of them, in ms of processor time.
        peak: The most memory that the process has had meanwhile, in bytes.
    """

    def __init__(self) -> None:
        self.stall = 0.0
        self.held = 0.0
        self.holds: list[float] = []
        self.peak = resident()

    @asynccontextmanager
    async def ticking(self) -> AsyncIterator[None]:
        """Tick every millisecond until the block ends."""
        task = asyncio.create_task(self._tick())
        await asyncio.sleep(0.01)
        self.stall = self.held = 0.0
        try:
            yield
            await asyncio.sleep(0.01)
        finally:
            task.cancel()

    async def _tick(self) -> None:
        ticks = 0
        while True:
            clock, held = time.perf_counter(), time.thread_time()
            await asyncio.sleep(0.001)
            self.stall = max(self.stall, (time.perf_counter() - clock - 0.001) * 1000)
            self.holds.append((time.thread_time() - held) * 1000)
            self.held = max(self.held, self.holds[-1])
            ticks += 1
            if ticks % 20 == 0:
                self.peak = max(self.peak, resident())


Load = Callable[[], Awaitable[Configuration]]


async def measured(read: "Reader", load: Load) -> Figures:
    """Read, and keep the result until its size is measured."""
    gc.collect()
    before, ticker = resident(), Ticker()
    clock, processor = time.perf_counter(), time.process_time()
    async with ticker.ticking():
        kept, objects = await read(load)
    seconds, spent = time.perf_counter() - clock, time.process_time() - processor
    gc.collect()
    size = resident()
    figures = Figures(
        seconds,
        spent,
        ticker.stall,
        ticker.held,
        size - before,
        max(ticker.peak, size) - before,
        objects,
    )
    if isinstance(kept, ClusterView):
        await kept.stop()
    return figures


async def pages(load: Load, encoding: str = "gzip") -> AsyncIterator[bytes]:
    """Yield the bodies of the pages that the view requests, one after the other."""
    client = Client(load)
    try:
        for kind in (NODES, PODS):
            query = {"limit": str(PAGE)}
            if kind.field_selector:
                query["fieldSelector"] = kind.field_selector
            while True:
                async with client.get(kind.path, query, 60, encoding) as response:
                    body = await response.read()
                yield body
                token = _continue(body)
                if not token:
                    break
                query["continue"] = token
    finally:
        await client.close()


def _continue(body: bytes) -> str:
    """Return the token of the next page, which is in the first bytes."""
    _, found, rest = body[:2000].partition(b'"continue":"')
    return rest.partition(b'"')[0].decode() if found else ""


async def transfer(load: Load) -> tuple[object, int]:
    """Transfer the pages and discard their JSON."""
    size = 0
    async for body in pages(load):
        size += len(body)
    return None, size


async def unpacked(load: Load) -> tuple[object, int]:
    """The same, uncompressed."""
    size = 0
    async for body in pages(load, "identity"):
        size += len(body)
    return None, size


async def view(load: Load) -> tuple[object, int]:
    """Read the live view's first list."""
    live = ClusterView(load, kinds=(NODES, PODS))
    live.start()
    assert await live.first_list(600)
    return live, len(live.state.nodes) + len(live.state.pods)


async def json_kept(load: Load) -> tuple[object, int]:
    """Keep the ``json.loads`` of each page."""
    kept: list[Any] = []
    async for body in pages(load):
        kept += json.loads(body)["items"]
    return kept, len(kept)


async def typed(load: Load) -> tuple[object, int]:
    """Read the typed lists of kubernetes_asyncio, in pages: all nodes, and the first pods."""
    kept: list[Any] = []
    async with ApiClient(await load()) as client:
        api = CoreV1Api(client)
        for listing in (api.list_node, api.list_pod_for_all_namespaces):
            token = ""
            while True:
                page = await listing(limit=PAGE, _continue=token)
                kept += page.items
                token = page.metadata._continue
                if not token or len(kept) >= TYPED:
                    break
    return kept, len(kept)


async def reflector(load: Load) -> tuple[object, int]:
    """Read with KubeSpawner's reflector, pods only: it can't keep nodes."""
    from kubernetes_asyncio.client import Configuration as Default
    from kubespawner.reflector import ResourceReflector

    class Pods(ResourceReflector):  # type: ignore[misc]
        kind = "pods"
        list_method_name = "list_pod_for_all_namespaces"

    Default.set_default(await load())
    pods = Pods(namespace="", omit_namespace=True)
    pods.api = CoreV1Api(ApiClient())
    await pods.start()
    await pods.first_load_future
    return pods, len(pods.resources)


Reader = Callable[[Load], Awaitable[tuple[object, int]]]
READERS: dict[str, Reader] = {
    "transfer": transfer,
    "unpacked": unpacked,
    "view": view,
    "reflector": reflector,
    "json": json_kept,
    "typed": typed,
}


def loading(kubeconfig: Path) -> Load:
    """Return a function that makes configurations for this kubeconfig's user."""

    async def load() -> Configuration:
        configuration = Configuration()
        await config.load_kube_config(str(kubeconfig), client_configuration=configuration)
        return configuration

    return load


def main() -> None:
    """Run one reader and print the figures."""
    name, kubeconfig = sys.argv[1:]
    figures = asyncio.run(measured(READERS[name], loading(Path(kubeconfig))))
    sys.stdout.write(msgspec.json.encode(asdict(figures)).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

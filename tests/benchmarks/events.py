"""Measures how long events of a watch and new lists occupy the hub's event loop.

`python -m tests.benchmarks.events KUBECONFIG ETCD_URL NODES` prints the figures as JSON.
"""

import asyncio
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from gpuspawner.cluster.client import Client
from gpuspawner.cluster.kinds import NODES, PODS
from gpuspawner.cluster.list_watch import ListEnd, Signal, Watcher
from gpuspawner.cluster.view import ClusterView
from localcluster import bulk
from localcluster.client import Object
from tests.benchmarks.readers import Load, Ticker, loading
from tests.benchmarks.running_pods import whole_pod

BURST = 10_000
ALONE = 300


@dataclass(frozen=True)
class Figures:
    """Processor time of the event loop's thread in µs per event, and its stalls in ms.

    Attributes:
        plain_burst: A watch whose bytes are discarded; events come as fast as possible.
        plain_alone: The same; events come one by one.
        plain_ends: How often the API server ended that watch because it was too slow.
        burst: The live view; events come as fast as possible.
        alone: The same; events come one by one.
        relist_stall: The longest stall while everything is listed again, by the clock.
        relist_held: The same in processor time.
    """

    plain_burst: float
    plain_alone: float
    plain_ends: int
    burst: float
    alone: float
    relist_stall: float
    relist_held: float


async def measured(load: Load, etcd_url: str, nodes: int) -> Figures:
    """Measure all of them, one after the other."""
    plain = await _plain(load, etcd_url, nodes)
    view = ClusterView(load, kinds=(NODES, PODS))
    view.start()
    assert await view.first_list(600)

    def shows(pod: Object) -> bool:
        meta = pod["metadata"]
        shown = view.state.pods[f"{meta['namespace']}/{meta['name']}"].labels
        return shown.get("round") == meta["labels"]["round"]

    burst = await _spent(etcd_url, nodes, BURST, BURST, shows)
    alone = await _spent(etcd_url, nodes, ALONE, 1, shows)
    ticker = Ticker()
    async with ticker.ticking():
        await list_again(view)
    await view.stop()
    return Figures(*plain, burst, alone, ticker.stall, ticker.held)


async def _plain(load: Load, etcd_url: str, nodes: int) -> tuple[float, float, int]:
    client = Client(load)
    async with client.get(PODS.path, {"limit": "1"}, 60) as response:
        version = msgspec.json.decode(await response.read())["metadata"]["resourceVersion"]
    reader = PlainReader(client, version)

    def has_come(pod: Object) -> bool:
        if watching.done():
            watching.result()
        return pod["metadata"]["labels"]["round"].encode() in reader.recent

    watching = asyncio.create_task(reader.watch())
    burst = await _spent(etcd_url, nodes, BURST, BURST, has_come)
    alone = await _spent(etcd_url, nodes, ALONE, 1, has_come)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    await client.close()
    return burst, alone, reader.ends


class PlainReader:
    """Reads a watch of all pods and discards all but the last line.

    On a machine with few cores the API server may end any reader's watch because it is too slow.
    This one then resumes at the last version that it saw, as the view does.

    Attributes:
        recent: The last complete line, and the beginning of the next.
        ends: How often the API server ended the watch.
    """

    def __init__(self, client: Client, version: str) -> None:
        self.recent = b""
        self.ends = 0
        self._client = client
        self._version = version

    async def watch(self) -> None:
        """Read forever."""
        while True:
            await self._read()
            self.ends += 1
            line, newline, _ = self.recent.partition(b"\n")
            if newline:
                self._version = _version(line)

    async def _read(self) -> None:
        """Read until the API server ends the watch."""
        query = {"watch": "true", "resourceVersion": self._version}
        self.recent = b""
        async with self._client.get(PODS.path, query, 600) as response:
            async for chunk in response.content.iter_any():
                recent = self.recent + chunk
                begin = recent.rfind(b"\n", 0, recent.rfind(b"\n")) + 1
                self.recent = recent[begin:]


def _version(line: bytes) -> str:
    event = msgspec.json.decode(line)
    assert event["type"] != "ERROR", event["object"]
    return str(event["object"]["metadata"]["resourceVersion"])


async def _spent(
    etcd_url: str, nodes: int, count: int, at_once: int, arrived: Callable[[Object], bool]
) -> float:
    """Change pods until the last change has arrived; return this thread's µs per event."""
    pods = [_changed(number, nodes) for number in range(count)]

    def put() -> None:
        # The last one has its own version: objects put in one batch share theirs, and a watch that
        # ends among them resumes after all of them.
        for begin in range(0, count - 1, at_once):
            bulk.put(etcd_url, pods[begin : min(begin + at_once, count - 1)], at_once)
            time.sleep(0.005)
        bulk.put(etcd_url, pods[-1:], 1)

    start = time.thread_time()
    await asyncio.to_thread(put)
    while not arrived(pods[-1]):  # noqa: ASYNC110 - waiting for an event would be measured too
        await asyncio.sleep(0.05)
    return (time.thread_time() - start) / count * 1e6


def _changed(number: int, nodes: int) -> Object:
    """Return an existing pod with one label changed."""
    pod: Object = whole_pod(number, number % nodes, gpus=0)
    pod["metadata"]["labels"]["round"] = secrets.token_hex(4)
    return pod


async def list_again(view: ClusterView) -> None:
    """Let a view that runs list its nodes and pods again, as after it has lost their history."""
    client = Client(view._access.load)
    try:
        for reflector in view._reflectors:
            if reflector.kind in (NODES, PODS):
                watcher: Any = _Once(
                    Watcher(client, reflector.kind, background=reflector.background)
                )
                await reflector.run(watcher)
    finally:
        await client.close()


class _Once:
    """A watcher that ends after its first list."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    async def signals(self) -> AsyncIterator[Signal]:
        async with aclosing(self._watcher.signals()) as signals:
            async for signal in signals:
                yield signal
                if isinstance(signal, ListEnd):
                    return


def main() -> None:
    """Measure and print."""
    kubeconfig, etcd_url, nodes = sys.argv[1:]
    figures = asyncio.run(measured(loading(Path(kubeconfig)), etcd_url, int(nodes)))
    sys.stdout.write(msgspec.json.encode(asdict(figures)).decode() + "\n")


if __name__ == "__main__":
    main()

"""Compares a hundred starts in one moment: `python -m tests.benchmarks.starts_at_once`.

A hundred people ask for a server at once: in turns of a real hub with KubeSpawner and of one with
GPUSpawner, on one real cluster. Each server is a process that listens. It prints medians of the
rounds; it asserts nothing.

To measure how long the event loop is held takes processor time itself. So two more hubs, which run
after the others, measure that.
"""

import statistics
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from localcluster import LocalCluster, Pods
from tests.benchmarks.spawning import OPTIONS, Starts, hub_on
from tests.benchmarks.stalls import PROBE, probe
from tests.hub.configurations import T4, t4_nodes
from tests.hub.running import RunningHub

ROUNDS = 3
PEOPLE = [f"user{number}" for number in range(100)]
NODES = t4_nodes(count=13, gpus=8)
# A stop answers once it is over: a hundred people who ask again and again would slow the hub.
STOCK = 'c.JupyterHub.tornado_settings = {"slow_stop_timeout": 300}\n'
OURS = T4 + "import gpuspawner\ngpuspawner.configure(c)\n"


def spent(hub: RunningHub) -> list[float]:
    """Return the seconds until all listen: by the clock, and of the hub's processor time."""
    starts = Starts(hub)
    with starts.measured():
        _start_all(hub)
    return [*starts.clock, *starts.processor]


def held(hub: RunningHub) -> list[float]:
    """Return the longest time that the event loop is held until all listen, in ms."""
    probe(hub, "held")
    _start_all(hub)
    return [float(probe(hub, "held")["held"])]


def _start_all(hub: RunningHub) -> None:
    def start(user: str) -> None:
        hub.api("POST", f"/users/{user}/server", OPTIONS)
        hub.until_ready(user)

    _for_all(start)


def _for_all(work: Callable[[str], object]) -> None:
    with ThreadPoolExecutor(len(PEOPLE)) as people:
        list(people.map(work, PEOPLE))


def compared(
    cluster: LocalCluster, folder: Path, more: str, measure: Callable[[RunningHub], list[float]]
) -> list[tuple[float, float]]:
    """Return KubeSpawner's and our median of each figure that *measure* returns."""
    with ExitStack() as stack:
        hubs = [
            stack.enter_context(hub_on(cluster, folder, f"{name}-{measure.__name__}", lines))
            for name, lines in (("stock", more), ("ours", more + OURS))
        ]
        for hub in hubs:
            hub.api("POST", "/users", {"usernames": PEOPLE})
        rounds = [[_once(hub, measure) for hub in hubs] for _ in range(ROUNDS + 1)]
    # The first round also makes what later ones find, such as compiled templates.
    stock, ours = (
        [statistics.median(figure) for figure in zip(*taken, strict=True)]
        for taken in zip(*rounds[1:], strict=True)
    )
    return list(zip(stock, ours, strict=True))


def _once(hub: RunningHub, measure: Callable[[RunningHub], list[float]]) -> list[float]:
    figures = measure(hub)
    _for_all(hub.stop)
    return figures


def main() -> None:
    """Run both pairs of hubs and print the table."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(LocalCluster(folder / "cluster", fleet=NODES, pods=Pods.RUN))
        clock, processor = compared(cluster, folder, STOCK, spent)
        (longest,) = compared(cluster, folder, STOCK + PROBE, held)
    print(f"| {len(PEOPLE)} starts in one moment | KubeSpawner | GPUSpawner | ratio |")
    print("| --- |" + " ---: |" * 3)
    rows = {
        "by the clock, in s": clock,
        "hub's processor, in s": processor,
        "loop held at most, in ms": longest,
    }
    for name, (stock, ours) in rows.items():
        print(f"| {name} | {stock:.1f} | {ours:.1f} | {ours / stock:.3f} |")
    print(f"Medians of {ROUNDS} rounds.")


if __name__ == "__main__":
    main()

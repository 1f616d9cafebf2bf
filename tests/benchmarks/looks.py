"""What a look at the line costs the hub: `python -m tests.benchmarks.looks`.

Nodes with eight GPUs, all in use, and ten people for each wish; wishes differ by their memory. The
line is looked at after each change of the cluster. Processor time is measured. The baseline is the
refusal of one of these servers, which a start costs too.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from gpuspawner.scheduling.evaluate import evaluate
from tests.unit.makers.line_stage import Stage
from tests.unit.makers.worlds import node, pod, proposal

SIZES = ((8, 100), (48, 100), (8, 1_000), (48, 1_000))
PEOPLE, GPUS, CHANGES, BASELINE = 10, 8, 30, 20


class Hub:
    """A hub's line and its view of a full cluster."""

    def __init__(self, nodes: int) -> None:
        busy = (("Pod", pod(f"{i}-{j}", 1, on=f"n{i}")) for i in range(nodes) for j in range(GPUS))
        self.stage = Stage(*(("Node", node(f"n{i}", GPUS)) for i in range(nodes)), *busy)
        self._changed = 0

    def a_pod_without_a_gpu_starts(self) -> None:
        self._changed += 1
        self.stage.view.put("Pod", pod(f"other-{self._changed}", 0, on=f"n{self._changed}"))

    def a_server_ends(self) -> None:
        self._changed += 1
        self.stage.view.remove_pod(f"{self._changed}-0")

    def refuse_one(self) -> None:
        evaluate(self.stage.view.state, wanted(0, 1).pod)


def wanted(wish: int, number: int) -> Any:
    """What one of those with a wish asks for: one GPU, or every fourth two."""
    one = proposal(f"w{wish}-{number}", 1 if wish % 4 else 2)
    plain: Any = one.pod
    resources = plain["spec"]["containers"][0]["resources"]
    resources["requests"]["memory"] = resources["limits"]["memory"] = f"{1_000 + wish}Mi"
    return one


def join(hub: Hub, wishes: int, until: ExitStack) -> None:
    """Let people join in turn, until the stack closes."""
    for number in range(PEOPLE):
        for wish in range(wishes):
            one = wanted(wish, number)
            ticket = hub.stage.line.ticket(one, one.name, number * wishes + wish)
            assert ticket is not None
            until.enter_context(hub.stage.line.join(ticket, one))


def seconds(change: Callable[[], None], what: Callable[[], None], times: int) -> list[float]:
    """Return the processor time of something, each time after a change."""
    found = []
    for _ in range(times):
        change()
        began = time.thread_time()
        what()
        found.append(time.thread_time() - began)
    return found


async def measure(wishes: int, nodes: int) -> None:
    """Print the rows of one size."""
    hub = Hub(nodes)
    baseline = statistics.mean(seconds(hub.a_pod_without_a_gpu_starts, hub.refuse_one, BASELINE))
    look = hub.stage.line.look
    with ExitStack() as until:
        join(hub, wishes, until)
        rows = {
            "a pod without a GPU starts": seconds(hub.a_pod_without_a_gpu_starts, look, CHANGES),
            "a server ends, the first": seconds(hub.a_server_ends, look, 1),
            "a server ends": seconds(hub.a_server_ends, look, CHANGES),
        }
    for name, them in rows.items():
        mean = statistics.mean(them)
        told = " | ".join(f"{1_000 * it:.1f} ms" for it in (mean, max(them)))
        print(f"| {nodes:,} | {wishes} | {name} | {told} | {mean / baseline:.1f} |", flush=True)


def main() -> None:
    """Print the table."""
    print("| nodes | wishes | change | mean | longest | ratio to one refusal |")
    print("| ---: | ---: | --- |" + " ---: |" * 3)
    for wishes, nodes in SIZES:
        asyncio.run(measure(wishes, nodes))


if __name__ == "__main__":
    main()

"""Measures an evaluation on clusters of three sizes: `python -m tests.benchmarks.evaluation`.

It prints figures and their growth from the smallest to the largest cluster; it asserts nothing.
"""

import gc
import resource
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling import ClusterState, evaluate
from gpuspawner.scheduling.static_filters import Screening
from tests.benchmarks.clusters import cluster, gpu_request, running_pod, with_home, worst_request

SIZES = ((500, 100, 15_000), (2_000, 400, 60_000), (5_000, 1_000, 150_000))
RUNS = 200


def measure(
    work: Callable[[], object], runs: int = RUNS, before: Callable[[], object] = lambda: None
) -> tuple[float, float]:
    """Return the median and the 99th percentile, in milliseconds.

    It measures the processor time of this thread: how long it would block an event loop, regardless
    of other processes.

    Args:
        work: what to measure.
        runs: how often.
        before: done before each run, not measured.
    """
    times = []
    for _ in range(runs):
        before()
        start = time.thread_time()
        work()
        times.append((time.thread_time() - start) * 1000)
    times.sort()
    return statistics.median(times), times[int(len(times) * 0.99) - 1]


def resident() -> int:
    """Return this process's memory in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def churn(state: ClusterState, nodes: int) -> None:
    """Bind one more pod to a node."""
    plain = running_pod(10_000_000, state.version * 7 % nodes, gpus=0)
    state.put(convert("Pod", plain))


def whole_answer(state: ClusterState, pod: Pod) -> str:
    """Evaluate, and write the scheduler's whole message."""
    verdict = evaluate(state, pod)
    return verdict.message + str(len(verdict.reasons)) + verdict.condition_message


def first_time(state: ClusterState, pod: Pod) -> str:
    """Do the same without results kept from before."""
    state.screening = Screening()
    return whole_answer(state, pod)


def rows(nodes: int, gpu_nodes: int, pods: int) -> dict[str, tuple[float, float]]:
    """Measure everything on one size of cluster; bind a pod before each evaluation."""
    usual, any_gpu, at_home, worst = (
        convert("Pod", plain)
        for plain in (
            gpu_request(),
            gpu_request(None),
            with_home(gpu_request()),
            worst_request(),
        )
    )
    result = {}
    for full in (False, True):
        state = cluster(nodes, gpu_nodes, pods, full=full)
        gc.collect()
        arrival = partial(churn, state, nodes)
        outcome = evaluate(state, usual).outcome
        works: dict[str, Callable[[], object]] = {
            f"{outcome}: one GPU of one model": partial(evaluate, state, usual),
            f"{outcome}: the same from a plain dict": partial(evaluate, state, gpu_request()),
            f"{outcome}: with a home volume": partial(evaluate, state, at_home),
            f"{outcome}: one GPU of any model": partial(evaluate, state, any_gpu),
        }
        if full:
            works["with reasons and message: one model"] = partial(whole_answer, state, usual)
            works["with reasons and message: any model"] = partial(whole_answer, state, any_gpu)
        else:
            works["worst pod (spread, affinities)"] = partial(evaluate, state, worst)
            works["a pod comes"] = arrival
        for name, work in works.items():
            result[name] = measure(work, before=arrival)
        for name, pod in (("one model", usual), ("any model", any_gpu), ("worst pod", worst)):
            first = partial(first_time, state, pod)
            result[f"{outcome}: first of its kind: {name}"] = measure(first, 30, before=arrival)
        del state, arrival, works, first
        gc.collect()
    return result


def size_in_memory(nodes: int, gpu_nodes: int, pods: int) -> tuple[float, float]:
    """Return how long building a state takes in seconds, and its size in MiB."""
    gc.collect()
    before, start = resident(), time.thread_time()
    state = cluster(nodes, gpu_nodes, pods)
    seconds = time.thread_time() - start
    gc.collect()
    return seconds, (resident() - before) / 2**20 if state else 0.0


def main() -> None:
    """Print the table."""
    built = size_in_memory(*SIZES[-1])
    columns = [rows(*size) for size in SIZES]
    heads = [f"{nodes} nodes, {pods} pods" for nodes, _, pods in SIZES]
    print("| p50 / p99 in ms |", *(f"{head} |" for head in heads), "growth |")
    print("| --- |" + " ---: |" * (len(SIZES) + 1))
    for name in columns[0]:
        cells = [f"{column[name][0]:.2f} / {column[name][1]:.2f} |" for column in columns]
        growth = columns[-1][name][0] / columns[0][name][0]
        print(f"| {name} |", *cells, f"x {growth:.1f} |")
    print("(the objects grow x 10)")
    print(f"{heads[-1]} from JSON: {built[0]:.1f} s, {built[1]:.0f} MiB")


if __name__ == "__main__":
    main()

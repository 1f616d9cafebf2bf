"""How long an evaluation takes, at three sizes of cluster: `python -m tests.benchmarks.evaluation`.

Prints figures and their growth from the smallest cluster to the largest; asserts nothing.
"""

import gc
import statistics
import time
from collections.abc import Callable
from functools import partial

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling import ClusterState, Verdict, evaluate
from gpuspawner.scheduling.screening import Screening

from .clusters import cluster, gpu_request, running_pod, worst_request

SIZES = ((500, 100, 15_000), (2_000, 400, 60_000), (5_000, 1_000, 150_000))
RUNS = 200


def measure(work: Callable[[], object], runs: int = RUNS) -> tuple[float, float]:
    """Return the median and the 99th percentile, in milliseconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    times.sort()
    return statistics.median(times), times[int(len(times) * 0.99) - 1]


def churn(state: ClusterState, nodes: int) -> None:
    """Let a pod come somewhere."""
    plain = running_pod(10_000_000, state.version * 7 % nodes, gpus=0)
    state.put(convert("Pod", plain))


def first_time(state: ClusterState, pod: Pod) -> Verdict:
    """Evaluate with nothing kept from before."""
    state.screening = Screening()
    return evaluate(state, pod)


def whole_answer(state: ClusterState, pod: Pod) -> str:
    """Evaluate and write all that the scheduler would say."""
    verdict = evaluate(state, pod)
    return verdict.message + str(len(verdict.reasons)) + verdict.condition_message


def rows(nodes: int, gpu_nodes: int, pods: int) -> dict[str, tuple[float, float]]:
    """Measure everything on one size of cluster."""
    usual, any_gpu, worst = (
        convert("Pod", plain) for plain in (gpu_request(), gpu_request(None), worst_request())
    )
    result = {}
    for full in (False, True):
        state = cluster(nodes, gpu_nodes, pods, full=full)
        gc.collect()

        outcome = evaluate(state, usual).outcome
        result[f"{outcome}: one GPU of one model"] = measure(partial(evaluate, state, usual))
        result[f"{outcome}: the same from a plain dict"] = measure(
            partial(evaluate, state, gpu_request())
        )
        result[f"{outcome}: one GPU of any model"] = measure(partial(evaluate, state, any_gpu))
        result[f"{outcome}: first of its kind"] = measure(partial(first_time, state, usual), 30)
        if full:
            result["with reasons and message: one model"] = measure(
                partial(whole_answer, state, usual)
            )
            result["with reasons and message: any model"] = measure(
                partial(whole_answer, state, any_gpu)
            )
        else:
            result["worst pod (spread, affinities)"] = measure(partial(evaluate, state, worst), 30)
            result["a pod comes"] = measure(partial(churn, state, nodes))
        del state
        gc.collect()
    return result


def main() -> None:
    """Print the table."""
    columns = [rows(*size) for size in SIZES]
    heads = [f"{nodes} nodes, {pods} pods" for nodes, _, pods in SIZES]
    width = max(map(len, columns[0])) + 2
    print("p50 / p99 in ms".ljust(width), *(head.rjust(26) for head in heads), "growth".rjust(10))
    for name in columns[0]:
        cells = [f"{column[name][0]:.3f} / {column[name][1]:.3f}" for column in columns]
        growth = columns[-1][name][0] / columns[0][name][0]
        print(name.ljust(width), *(c.rjust(26) for c in cells), f"x {growth:.1f}".rjust(10))
    print("objects grow by".ljust(width), "x 10.0".rjust(26 * 3 + 13))


if __name__ == "__main__":
    main()

"""How long an evaluation takes, at three sizes of cluster: `python -m tests.benchmarks.evaluation`.

Prints figures and their growth from the smallest cluster to the largest; asserts nothing.
"""

import gc
import statistics
import time
from collections.abc import Callable

from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling import ClusterState, Verdict, evaluate
from gpuspawner.scheduling.screening import Screening

from .clusters import cluster, gpu_request, running_pod, worst_request

SIZES = ((500, 100, 15_000), (2_000, 400, 60_000), (5_000, 1_000, 150_000))
RUNS = 200


def measure(work: Callable[[int], object], runs: int = RUNS) -> tuple[float, float]:
    """Return the median and the 99th percentile, in milliseconds."""
    times = []
    for number in range(runs):
        start = time.thread_time()
        work(number)
        times.append((time.thread_time() - start) * 1000)
    times.sort()
    return statistics.median(times), times[int(len(times) * 0.99) - 1]


def churn(state: ClusterState, nodes: int, number: int) -> None:
    """Let a pod come somewhere, so that no evaluation meets the state of the one before."""
    state.put(convert("Pod", running_pod(10_000_000, number * 7 % nodes, gpus=0)))


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

        def on(pod: object, answer: Callable[[ClusterState, Pod], object]) -> Callable[[int], None]:
            def work(number: int) -> None:
                answer(state, pod)

            return work

        outcome = evaluate(state, usual).outcome
        result[f"{outcome}: one GPU of one model"] = measure(on(usual, evaluate))
        result[f"{outcome}: the same from a plain dict"] = measure(on(gpu_request(), evaluate))
        result[f"{outcome}: one GPU of any model"] = measure(on(any_gpu, evaluate))
        result[f"{outcome}: first of its kind"] = measure(on(usual, first_time), 30)
        if full:
            result["with reasons and message: one model"] = measure(on(usual, whole_answer))
            result["with reasons and message: any model"] = measure(on(any_gpu, whole_answer))
        else:
            result["worst pod (spread, affinities)"] = measure(on(worst, evaluate), 30)
            arrivals = measure(lambda number: churn(state, nodes, number))
            result["a pod comes"] = arrivals
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

"""Compares starts that fail: `python -m tests.benchmarks.failing_starts`.

Two real hubs on one real cluster, one with KubeSpawner and one with GPUSpawner, start the same
servers, one a second. In each start something else goes wrong. The table shows what the
server's owner reads at the end, the seconds from the click until then, and whether a pod is left
ten seconds later. It prints figures; it asserts nothing.

Time-outs are the defaults, but for two of GPUSpawner: `preparing_timeout`, and the time that a new
machine may take. Both are 60 s like JupyterHub's `start_timeout`, so that nothing takes 20 minutes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from localcluster import Fleet, LocalCluster, Pods, rbac
from tests.benchmarks.faults import (
    FAULTS,
    URGENT,
    WITH_KARPENTER,
    Fault,
    Place,
    autoscaled,
    with_karpenter,
)
from tests.hub.configurations import ANSWER_AT_ONCE
from tests.hub.running import RunningHub, running_hub
from tests.servers import single_user
from tests.waiting import wait_for

LATER = 10.0
"""Seconds after which a pod that is still there counts as left."""
HUBS = ("stock", "ours")
OURS = """
import gpuspawner
from gpuspawner.scaling import usual_times
c.GPUSpawner.preparing_timeout = 60
usual_times.LEAST_MINUTES = 0
gpuspawner.configure(c)
"""
STOCK = 'c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"\n'


@dataclass(frozen=True)
class End:
    """The end of one start.

    Attributes:
        text: What its owner reads.
        seconds: From the click until then.
        is_left: Whether its pod is still there later.
    """

    text: str
    seconds: float
    is_left: bool

    def cells(self) -> str:
        text = " ".join(self.text.split()).replace("|", "\\|")
        seconds = "<1" if self.seconds < 1 else f"{self.seconds:.0f}"
        return f"{text} | {seconds} | {'yes' if self.is_left else 'no'}"


@contextmanager
def _hub(
    cluster: LocalCluster, folder: Path, name: str, faults: Sequence[Fault]
) -> Iterator[RunningHub]:
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    (folder / name).mkdir()
    profiles = [fault.profile(name) for fault in faults]
    lines = f"""
{ANSWER_AT_ONCE}
c.KubeSpawner.namespace = {name!r}
c.KubeSpawner.cmd = {single_user.COMMAND!r}
c.KubeSpawner.profile_list = {profiles!r}
{OURS if name == "ours" else STOCK}
"""
    environment = {"KUBECONFIG": str(rbac.hub_kubeconfig(cluster, name))}
    with running_hub(folder / name, lines, environment=environment) as hub:
        if name == "ours":
            hub.until_it_sees_the_cluster()
        yield hub


def _end(hub: RunningHub, fault: Fault, place: Place, after: float) -> End:
    """Start a server that fails *after* some seconds, and return how that ends."""
    time.sleep(after)  # many at once would slow each other down
    hub.api("POST", f"/users/{fault.slug}")
    if fault.before:
        fault.before(place)
    with ThreadPoolExecutor(1) as other:
        clicked = time.monotonic()
        answer = hub.start(fault.slug, {"profile": fault.slug})
        if fault.meanwhile:
            other.submit(_meanwhile, fault, place)
        text = _last(hub, fault.slug) if answer.status_code == 202 else answer.json()["message"]
        seconds = time.monotonic() - clicked
    time.sleep(LATER)
    return End(text, seconds, place.is_there())


def _meanwhile(fault: Fault, place: Place) -> None:
    wait_for(place.is_bound)
    fault.meanwhile(place)


def _last(hub: RunningHub, user: str) -> str:
    events = hub.events(user)
    return str(events[-1].get("message", "")) if events else ""


def _place(cluster: LocalCluster, name: str, fault: Fault) -> Place:
    return Place(cluster.plane.client(), name, f"{fault.slug}-{name}-0", f"jupyter-{fault.slug}")


def _measure(fleet: Fleet, faults: Sequence[Fault]) -> Iterator[str]:
    """Run the starts on a cluster of their own, and yield a row for each."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(LocalCluster(folder / "cluster", fleet=fleet, pods=Pods.RUN))
        classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
        cluster.api.create(classes, {"metadata": {"name": URGENT}, "value": 1000})
        hubs = {name: stack.enter_context(_hub(cluster, folder, name, faults)) for name in HUBS}
        users = stack.enter_context(ThreadPoolExecutor(len(faults) * len(hubs)))
        ends = {
            (fault.slug, name): users.submit(_end, hub, fault, _place(cluster, name, fault), after)
            for after, fault in enumerate(faults)
            for name, hub in hubs.items()
        }
        for fault in faults:
            stock, ours = (ends[fault.slug, name].result() for name in HUBS)
            yield f"| {fault.name} | {stock.cells()} | {ours.cells()} |"


def main() -> None:
    """Run all starts and print the table."""
    print("| what goes wrong | with KubeSpawner | s | pod left | with GPUSpawner | s | pod left |")
    print("| --- |" + " --- | ---: | --- |" * 2)
    for fleet, faults in ((autoscaled(HUBS), FAULTS), (with_karpenter(HUBS), WITH_KARPENTER)):
        for row in _measure(fleet, faults):
            print(row, flush=True)


if __name__ == "__main__":
    main()

"""Measures the spawn page with our form: `python -m tests.benchmarks.form [NODES PODS]`.

The hubs use one cluster. One shows GPUSpawner's form, one KubeSpawner's form of profiles with as
many choices. Of two others with the same 21 profiles, one has gpuspawner and one doesn't; each page
is another user's. It requests the pages in turns and prints each hub's time to the first byte and
the ratio to the hub without gpuspawner; it asserts nothing.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from localcluster import LocalCluster
from tests.benchmarks.clusters import MODELS
from tests.benchmarks.filled import filled_cluster
from tests.hub.people import Person
from tests.hub.running import RunningHub, running_hub
from tests.waiting import wait_for

SIZE = (5_000, 20_000)
TIMES = 200
PEOPLE = 20
"""Whose pages are requested in turns."""
READING = ('data-state="reading"', "still reading the cluster")
COUNTS = [1, 2, 4, 8]
SIZES = ["8G", "16G", "32G", "64G"]
"""As both KubeSpawner and Kubernetes write them."""
CORES = [1, 2, 4, 8]

COMMON = """
c.KubeSpawner.namespace = "default"
"""
OURS = f"""
import gpuspawner
c.GPUSpawner.accelerators = {{
    f"model-{{number}}": {{
        "node_selector": {{"nvidia.com/gpu.product": model}},
        "tolerations": [{{"operator": "Exists"}}],
        "counts": {COUNTS},
    }}
    for number, model in enumerate({MODELS})
}}
c.GPUSpawner.images = {{f"image-{{n}}": {{"image": f"i:{{n}}"}} for n in range(4)}}
c.GPUSpawner.memory_choices = {SIZES}
c.GPUSpawner.cpu_choices = {CORES}
gpuspawner.configure(c)
"""
# The choices of our form, as an administrator would write them as profile options.
STOCK = f"""
def choices(trait, values):
    named = {{str(value): {{trait: value}} for value in values}}
    return {{k: {{"display_name": k, "kubespawner_override": v}} for k, v in named.items()}}

c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.KubeSpawner.profile_list = [
    {{
        "display_name": f"model-{{number}}",
        "profile_options": {{
            "gpus": {{"display_name": "GPUs", "choices": choices("cpu_guarantee", {COUNTS})}},
            "image": {{"display_name": "Image", "choices": choices("image", ["a", "b", "c", "d"])}},
            "memory": {{"display_name": "Memory", "choices": choices("mem_limit", {SIZES})}},
            "cpu": {{"display_name": "CPU", "choices": choices("cpu_limit", {CORES})}},
        }},
    }}
    for number in range({len(MODELS)})
]
"""

PROFILES = f"""
def choices(trait, values):
    named = {{str(value): {{trait: value}} for value in values}}
    return {{k: {{"display_name": k, "kubespawner_override": v}} for k, v in named.items()}}

def profile(number):
    images = choices("image", ["i:0", "i:1", "i:2"])
    options = {{"image": {{"display_name": "Image", "choices": images}}}}
    override = {{"mem_guarantee": f"{{number + 1}}G", "cpu_guarantee": 2}}
    if number % 3:
        gpus = [{{"nvidia.com/gpu": str(count)}} for count in {COUNTS}]
        override["node_selector"] = {{"nvidia.com/gpu.product": {MODELS}[number % {len(MODELS)}]}}
        override["tolerations"] = [{{"operator": "Exists"}}]
        options["gpus"] = {{"display_name": "GPUs", "choices": {{
            str(count): {{"display_name": f"{{count}} GPUs", "kubespawner_override": {{
                "extra_resource_limits": {{"nvidia.com/gpu": str(count)}}}}}}
            for count in {COUNTS}
        }}}}
    else:
        options["memory"] = {{"display_name": "Memory", "choices": choices("mem_limit", {SIZES})}}
    return {{"display_name": f"Profile {{number}}", "description": "For courses",
            "kubespawner_override": override, "profile_options": options}}

c.KubeSpawner.profile_list = [profile(number) for number in range(21)]
"""
STOCK_PROFILES = PROFILES + 'c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"\n'
OUR_PROFILES = PROFILES + "import gpuspawner\ngpuspawner.configure(c)\n"


def main() -> None:
    """Make the cluster and the hubs, and print the table."""
    nodes, pods = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else SIZE
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(filled_cluster(folder, nodes, pods))
        _compare(folder / "accelerators", cluster, STOCK, OURS)
        _compare(folder / "profiles", cluster, STOCK_PROFILES, OUR_PROFILES)


def _compare(folder: Path, cluster: LocalCluster, stock: str, ours: str) -> None:
    """Run two hubs, and print the table of their pages."""
    folder.mkdir()
    with ExitStack() as stack:
        hubs = {
            name: stack.enter_context(_hub(folder / name, cluster, lines))
            for name, lines in (("stock", stock), ("gpuspawner", ours))
        }
        people = {
            name: [hub.person(f"user-{number}") for number in range(PEOPLE)]
            for name, hub in hubs.items()
        }
        first = people["gpuspawner"][0]
        wait_for(lambda: not any(it in _page(first) for it in READING), timeout=300)
        before = {name: _processor(hubs[name]) for name in hubs}
        taken = _measure(people)
        spent = {name: (_processor(hubs[name]) - before[name]) / TIMES for name in hubs}
        print(folder.name)
        _print(taken, spent)


@contextmanager
def _hub(folder: Path, cluster: LocalCluster, lines: str) -> Iterator[RunningHub]:
    folder.mkdir()
    environment = {"KUBECONFIG": str(cluster.kubeconfig)}
    with running_hub(folder, COMMON + lines, environment=environment) as hub:
        yield hub


def _processor(hub: RunningHub) -> float:
    """Return a hub's processor time so far, in milliseconds."""
    fields = Path(f"/proc/{hub.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _page(person: Person) -> str:
    return person.open("/hub/spawn").html


def _measure(people: dict[str, list[Person]]) -> dict[str, list[float]]:
    """Return the times to the first byte in ms; in turns, so that both hubs meet the same load."""
    taken: dict[str, list[float]] = {name: [] for name in people}
    for number in range(TIMES):
        for name, all_of_them in people.items():
            person = all_of_them[number % PEOPLE]
            began = time.perf_counter()
            answer = person.session.get(f"{person.hub.url}/hub/spawn", stream=True)
            next(answer.iter_content(1))
            taken[name].append((time.perf_counter() - began) * 1000)
            _ = answer.content
    return taken


def _print(taken: dict[str, list[float]], spent: dict[str, float]) -> None:
    stock = taken["stock"]
    print("| form | median | ratio | 90th percentile | ratio | processor | ratio |")
    print("| --- |" + " ---: |" * 6)
    for name, times in taken.items():
        median, late = statistics.median(times), statistics.quantiles(times, n=10)[-1]
        ratios = median / statistics.median(stock), late / statistics.quantiles(stock, n=10)[-1]
        figures = f"{median:.1f} ms | {ratios[0]:.2f} | {late:.1f} ms | {ratios[1]:.2f}"
        own = f"{spent[name]:.1f} ms | {spent[name] / spent['stock']:.2f}"
        print(f"| {name} | {figures} | {own} |")


if __name__ == "__main__":
    main()

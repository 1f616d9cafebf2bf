"""What the page of GPUs costs: `python -m tests.benchmarks.gpus_page [NODES SERVERS]`.

A real hub on the local control plane has nodes of 8 GPUs, and a server with one GPU for each of as
many users. Printed are how long the page and its figures take an administrator and somebody else,
their bytes, and how long the hub's loop is held meanwhile, beside a plain page of the hub; how long
a scrape takes, and our part of it; and how soon an open page has a change. It asserts nothing.
"""

from __future__ import annotations

import json
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import requests

from localcluster import LocalCluster, Pods
from tests.benchmarks.clusters import MODELS
from tests.benchmarks.filled import fill
from tests.benchmarks.running_pods import whole_node, whole_pod
from tests.hub.people import Person
from tests.hub.running import RunningHub, running_hub
from tests.waiting import wait_for

NODES, SERVERS = 1_000, 5_000
TIMES = 15
PLAIN = "/hub/token"
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
LOADED = """
[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .filter((it) => it.name.includes('gpus') || it.name.includes('follow'))
    .reduce((sum, it) => sum + it.transferSize, 0)
"""
OPTIONS = {
    f"model-{number}": {
        "node_selector": {"nvidia.com/gpu.product": model},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    }
    for number, model in enumerate(MODELS)
}
CONFIGURATION = f"""
import time, gpuspawner
from tests.benchmarks import hub_probe
hub_probe.begin(c)
c.KubeSpawner.namespace = "jhub"
c.JupyterHub.authenticate_prometheus = False
c.GPUSpawner.accelerators = {OPTIONS!r}
c.GPUSpawner.gpu_use = True
from gpuspawner.use import metrics
collect = metrics.Gauges.collect
def timed(self):
    began = time.thread_time()
    yield from list(collect(self))
    print(f"collected in {{1000 * (time.thread_time() - began):.2f}} ms", flush=True)
metrics.Gauges.collect = timed
gpuspawner.configure(c)
"""


def main(nodes: int = NODES, servers: int = SERVERS) -> None:
    """Print all figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hub").mkdir()
        with LocalCluster(folder / "cluster", pods=Pods.LEAVE, controllers=()) as cluster:
            made = [whole_node(it, gpu=True) for it in range(nodes)]
            pods = [whole_pod(it, it % nodes, gpus=1) for it in range(servers)]
            for pod in pods:
                pod["metadata"]["namespace"] = "jhub"
            fill(cluster, [*made, *pods], nodes + servers)
            environment = {"KUBECONFIG": str(cluster.kubeconfig)}
            with running_hub(folder / "hub", CONFIGURATION, environment=environment) as hub:
                own(hub, pods)
                measure(hub, cluster, servers)


def own(hub: RunningHub, pods: list[dict]) -> None:
    """Let the hub's database say that the pods are servers of users, and that they run.

    It says the second only after the hub's start, when the hub would look for each server.
    """
    hub.until_it_sees_the_cluster()
    hub.end()
    with closing(sqlite3.connect(hub.database)) as database, database:
        for number, pod in enumerate(pods, 1000):
            meta = pod["metadata"]
            granted = json.dumps({"pod": meta["uid"], "accelerator": f"model-{number % 5}"})
            state = {"pod_name": meta["name"], "namespace": "jhub"}
            state["gpuspawner"] = {"granted": granted}
            user = f"user{number - 1000}"
            database.execute(
                "INSERT INTO users (id, name, cookie_id) VALUES (?, ?, ?)", (number, user, user)
            )
            database.execute(
                "INSERT INTO spawners (user_id, name, state, last_activity)"
                " VALUES (?, '', ?, datetime('now'))",
                (number, json.dumps(state)),
            )
    hub.begin()
    hub.until_it_serves()
    hub.until_it_sees_the_cluster()
    with closing(sqlite3.connect(hub.database, timeout=60)) as database, database:
        database.execute("UPDATE spawners SET server_id = id WHERE server_id IS NULL")


def measure(hub: RunningHub, cluster: LocalCluster, servers: int) -> None:
    """Measure everything."""
    admin, somebody = hub.person("admin"), hub.person("somebody")
    wait_for(lambda: f"of {servers}" in admin.open("/hub/gpuspawner/gpus").html)
    print(
        "| what | median | longest | bytes | loop held | of it Python's collections |", flush=True
    )
    print("| --- | --- | --- | --- | --- | --- |")
    page = "/hub/gpuspawner/gpus"
    for name, person, path in (
        ("a plain page", admin, PLAIN),
        ("the page, administrator", admin, page),
        ("its figures, administrator", admin, f"{page}/figures"),
        ("sorted and filtered", admin, f"{page}/figures?order=used&text=user1"),
        ("fifty servers, asked for", admin, f"{page}/capacity?offer=model-1&servers=50"),
        ("a thousand servers", admin, f"{page}/capacity?offer=model-1&servers=1000"),
        ("the page, somebody", somebody, page),
        ("/hub/metrics", somebody, "/hub/metrics"),
    ):
        print(row(hub, name, lambda p=person, a=path: p.session.get(f"{hub.url}{a}")), flush=True)
    collected = [float(it) for it in re.findall(r"collected in ([0-9.]+) ms", hub.log)]
    print(f"\nOur part of a scrape: {statistics.median(collected[-TIMES:]):.2f} ms")
    late = [follow(hub, admin, cluster, number) for number in range(5)]
    print("Until an open page has a change:", ", ".join(f"{it:.2f} s" for it in late))
    if find_spec("playwright"):
        print(painted(hub, admin, page))


def painted(hub: RunningHub, person: Person, path: str) -> str:
    """Say when a browser that knows nothing yet has painted a page, and how much it has loaded."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import ARGUMENTS
    from tools.chromium import on_path

    cookies = [
        {"name": it.name, "value": it.value or "", "domain": "127.0.0.1", "path": it.path}
        for it in person.session.cookies
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=on_path(), args=ARGUMENTS)
        paints, loaded = [], 0
        for _ in range(TIMES):
            context = browser.new_context()
            context.add_cookies(cookies)
            opened = context.new_page()
            opened.goto(f"{hub.url}{path}")
            opened.wait_for_function(FIRST_PAINT)
            paints.append(opened.evaluate(FIRST_PAINT))
            loaded = opened.evaluate(LOADED)
            context.close()
        browser.close()
    first = f"{statistics.median(paints):.0f} ms, at most {max(paints):.0f} ms"
    return f"First paint: {first}; the page and its own files: {loaded:,} bytes"


def row(hub: RunningHub, name: str, ask: Callable[[], requests.Response]) -> str:
    """Ask some times, with time for other questions between, and return the line of a table."""
    took, held, collected, answer = [], [], [], ask()
    for _ in range(TIMES):
        time.sleep(0.3)
        requests.get(f"{hub.direct}/hub/probe/held", timeout=60)
        began = time.monotonic()
        answer = ask()
        took.append(time.monotonic() - began)
        found = requests.get(f"{hub.direct}/hub/probe/held", timeout=60).json()
        held.append(found["held"])
        collected.append(found["collection"])
    assert answer.status_code == 200, answer.text
    times = f"{1000 * statistics.median(took):.0f} ms | {1000 * max(took):.0f} ms"
    loop = f"{statistics.median(held):.1f} ms, at most {max(held):.1f} ms"
    return f"| {name} | {times} | {len(answer.content):,} | {loop} | {max(collected):.1f} ms |"


def follow(hub: RunningHub, person: Person, cluster: LocalCluster, number: int) -> float:
    """Return how long a deleted pod takes until an open page has the figures without it."""
    headers = {"X-XSRFToken": person.xsrf, "Sec-Fetch-Mode": "cors"}
    url = f"{hub.url}/hub/gpuspawner/gpus"
    stream = f"{url}/stream/{person.name}/"
    with person.session.get(stream, headers=headers, stream=True, timeout=60) as answer:
        events = (it for it in answer.iter_lines(chunk_size=1) if it.startswith(b"data:"))
        next(events)
        time.sleep(2)
        began = time.monotonic()
        cluster.api.delete(f"/api/v1/namespaces/jhub/pods/jupyter-user{number}", grace=0)
        next(events)
        shown = person.session.get(f"{url}/figures?text=user{number}").text
        assert f">user{number}<" not in shown
        return time.monotonic() - began


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

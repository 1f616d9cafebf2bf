"""A hub with the page of GPUs: ann and bob have some, a node is cordoned, and cleo was refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page

from localcluster import Fleet, LocalCluster, NodeGroup
from tests.browser.held_hubs import a_held_hub
from tests.hub.running import RunningHub

NAMESPACE = "use"
GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.10gb"
PAGE = ".gpuspawner-gpus"


def _nodes(key: str, count: int, resource: str, gpus: int) -> NodeGroup:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", resource: str(gpus)}
    return NodeGroup(f"use-{key}", count, amounts, {"use": key})


NODES = Fleet((_nodes("a100", 3, GPU, 8), _nodes("t4", 2, GPU, 4), _nodes("mig", 1, MIG, 7)))
ACCELERATORS = {
    "a100": {"display_name": "NVIDIA A100", "counts": [1, 2, 4], "node_selector": {"use": "a100"}},
    "mig": {
        "display_name": "NVIDIA A100, 10 GB",
        "resource": MIG,
        "counts": [1],
        "node_selector": {"use": "mig"},
    },
    "t4": {"display_name": "NVIDIA T4", "counts": [1, 8], "node_selector": {"use": "t4"}},
}
CONFIGURATION = f"""
c.JupyterHub.allow_named_servers = True
c.GPUSpawner.gpu_use = True
c.GPUSpawner.accelerators = {ACCELERATORS!r}
c.GPUSpawner.policies = {{"course": {{"groups": ["vision-course"], "gpus_per_group": 6}}}}
c.JupyterHub.load_groups = {{"vision-course": {{"users": ["bob"]}}}}
"""


@contextmanager
def a_hub_in_use(cluster: LocalCluster, folder: Path) -> Iterator[RunningHub]:
    """Run the hub."""
    with a_held_hub(cluster, folder, NAMESPACE, NODES, CONFIGURATION) as hub:
        hub.start_until_ready("ann", {"accelerator": "a100", "gpus": 4})
        hub.start_until_ready("bob", {"accelerator": "t4", "gpus": 1})
        hub.start_until_ready("dora", {"accelerator": "mig", "gpus": 1})
        hub.start("cleo", {"accelerator": "t4", "gpus": 8})
        cluster.api.patch("/api/v1/nodes/use-a100-2", {"spec": {"unschedulable": True}})
        yield hub
        for user in ("ann", "bob", "dora"):
            hub.stop(user)


def open_the_page(page: Page, hub: RunningHub, query: str = "") -> None:
    """Open the page of GPUs."""
    page.goto(f"{hub.url}/hub/gpuspawner/gpus{query}")
    page.locator(PAGE).wait_for()


def ask_about_a_course(page: Page) -> None:
    """Ask on the page of GPUs for more servers than a group may have."""
    page.get_by_role("link", name="How many servers can start now?").click()
    page.get_by_label("Server", exact=True).select_option("1 × NVIDIA T4")
    page.get_by_label("How many").fill("9")
    page.get_by_label("For the group (optional)").fill("vision-course")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("region", name="Answer").wait_for()

"""A hub with a line: Alice and Bob have both A100s, and there are T4s."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

from localcluster import Fleet, LocalCluster, NodeGroup
from tests.browser.held_hubs import a_held_hub
from tests.hub.running import RunningHub

NAMESPACE = "line"
GPU = "nvidia.com/gpu"
HOLDERS = ("alice", "bob")
LEAVE = "Leave the line, or take something else"
PLACE = ".gpuspawner-said"


def _nodes(key: str, gpus: int) -> NodeGroup:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
    return NodeGroup(f"line-{key}", 1, amounts, {"line": key})


NODES = Fleet((_nodes("a100", 2), _nodes("t4", 8)))
_SHARED = """
c.KubeSpawner.poll_interval = 1
c.JupyterHub.allow_named_servers = True
c.GPUSpawner.policies = {"everybody": {"lifetime": "40m"}}
"""
ACCELERATORS: dict[str, dict[str, Any]] = {
    "a100": {
        "display_name": "NVIDIA A100",
        "description": "80 GB, for training",
        "counts": [1, 2],
        "node_selector": {"line": "a100"},
    },
    "t4": {
        "display_name": "NVIDIA T4",
        "description": "16 GB, for classes",
        "counts": [1],
        "node_selector": {"line": "t4"},
    },
}
_WAITED = """
import time
from gpuspawner.line import usual_waits, waiting_line
class Waited(usual_waits.Waits):
    def __init__(self):
        super().__init__()
        called = time.time() - 3600
        for number, minutes in enumerate((10.5, 39.5) * 50):  # a few more change nothing
            self.join(("line", str(number)), ("", "a100", 1), called - 60 * minutes)
            self.call(("line", str(number)), called)
waiting_line.Waits = Waited
"""
"""Lets people have waited for an A100 before, for 10 to 40 minutes: a test can't wait so long."""
OF_ACCELERATORS = f"{_SHARED}{_WAITED}c.GPUSpawner.accelerators = {ACCELERATORS!r}\n"


def _profile(slug: str, name: str, description: str) -> dict[str, Any]:
    override = {"extra_resource_limits": {GPU: "1"}, "node_selector": {"line": slug}}
    words = {"display_name": name, "description": description}
    return {"slug": slug, **words, "kubespawner_override": override}


PROFILES = [
    _profile("a100", "Training", "One A100 with 80 GB"),
    _profile("t4", "Classes", "One T4 with 16 GB"),
]
OF_PROFILES = f"{_SHARED}c.KubeSpawner.profile_list = {PROFILES!r}\n"


@contextmanager
def a_hub_with_a_line(
    cluster: LocalCluster,
    folder: Path,
    configuration: str = OF_ACCELERATORS,
    queue: object = True,
) -> Iterator[RunningHub]:
    """Run a hub with a line, on a cluster that runs pods."""
    lines = f"{configuration}c.GPUSpawner.queue = {queue!r}\n"
    with a_held_hub(cluster, folder, NAMESPACE, NODES, lines) as hub:
        yield hub


def fill(hub: RunningHub, **options: str) -> None:
    """Let Alice and Bob have what these options choose, unless they have it."""
    for user in HOLDERS:
        hub.api("POST", f"/users/{user}")
        if not hub.server(user).get("ready"):
            hub.start_until_ready(user, options)


def button(page: Page) -> Locator:
    """The button of a form whose server can't start."""
    return page.get_by_role("button", name="Wait in line")


def wait_in_line(page: Page) -> None:
    """Press the button, and wait for the page that says the place."""
    button(page).click()
    page.wait_for_url("**/hub/spawn-pending/**")
    page.locator("#progress-message .gpuspawner-line").wait_for()

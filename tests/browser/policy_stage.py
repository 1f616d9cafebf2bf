"""A hub with policies, and people who have used up what is theirs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from localcluster import Fleet, LocalCluster, NodeGroup
from tests.browser.held_hubs import a_held_hub
from tests.hub.running import RunningHub
from tests.waiting import wait_for

NAMESPACE = "policies"
GPU = "nvidia.com/gpu"
HOSTILE = "<script>document.title = 'taken over'</script>"
ODD_NAME = 'it\'s "mine" <b>'


def _accelerator(key: str, name: str, description: str, counts: list[int]) -> dict[str, Any]:
    words = {"display_name": name, "description": description}
    return {**words, "counts": counts, "node_selector": {"policies": key}}


ACCELERATORS = {
    "t4": _accelerator("t4", "NVIDIA T4", "16 GB, for classes", [1, 2, 4]),
    "a100": _accelerator("a100", "NVIDIA A100", "80 GB, for training", [1, 2]),
    "h100": _accelerator("h100", "NVIDIA H100", "80 GB, for large models", [1]),
}
GROUPS = {
    "lab": ["ann", "ida", "stan", "nora"],
    "ml-2026": ["bob", "cleo"],
    "night": ["kim"],
    "guests": ["gil"],
}
POLICIES = {
    "lab": {"groups": ["lab"], "gpus_per_user": {"all": 4, "a100": 1}},
    "course": {
        "groups": ["ml-2026"],
        "gpus_per_user": 2,
        "gpus_per_group": 3,
        "accelerators": ["t4"],
        "explanation": "The course has three GPUs together.",
    },
    "night": {"groups": ["night"], "lifetime": "12h"},
    "guests": {"groups": ["guests"], "gpus_per_user": 1, "explanation": f"For guests {HOSTILE}"},
    "research": {
        "except": {"groups": ["research"]},
        "accelerators": ["t4", "a100"],
        "explanation": "H100s are for the research group. Ask gpus@example.org to join it.",
        "show_withheld": True,
    },
}
NAMED_SERVERS = """
c.KubeSpawner.poll_interval = 1
c.JupyterHub.allow_named_servers = True
"""
LAB = f"""
c.JupyterHub.load_groups = { ({name: {"users": users} for name, users in GROUPS.items()})!r}
c.GPUSpawner.accelerators = {ACCELERATORS!r}
c.GPUSpawner.memory_choices = ["4Gi", "16Gi"]
c.GPUSpawner.policies = {POLICIES!r}
"""


def _nodes(key: str, gpus: int) -> NodeGroup:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
    return NodeGroup(f"policies-{key}", 1, amounts, {"policies": key})


NODES = Fleet((_nodes("t4", 16), _nodes("a100", 8), _nodes("h100", 8)))


@contextmanager
def a_hub_with_policies(cluster: LocalCluster, folder: Path) -> Iterator[RunningHub]:
    """Run a hub with `POLICIES`, on a cluster that runs pods and has enough GPUs for everybody."""
    with a_hub_with(cluster, folder, LAB) as hub:
        yield hub


@contextmanager
def a_hub_with(cluster: LocalCluster, folder: Path, configuration: str) -> Iterator[RunningHub]:
    """Run a hub with this configuration, on the same cluster."""
    lines = f"{NAMED_SERVERS}{configuration}"
    with a_held_hub(cluster, folder, NAMESPACE, NODES, lines) as hub:
        yield hub


def give(hub: RunningHub, user: str, server: str, accelerator: str = "t4", gpus: int = 1) -> None:
    """Start a server of a user, and wait until it is ready; "" is the default server."""
    path = f"/users/{user}/servers/{quote(server, safe='')}" if server else f"/users/{user}/server"
    hub.api("POST", f"/users/{user}")
    answer = hub.api("POST", path, {"accelerator": accelerator, "gpus": gpus})
    assert answer.status_code in {201, 202}, answer.text
    wait_for(lambda: _servers(hub, user).get(server, {}).get("ready"))


def give_ann_two_of_four(hub: RunningHub) -> None:
    """Let Ann have two of her four GPUs, and the only A100 that she can have."""
    give(hub, "ann", "train")
    give(hub, "ann", "demo", "a100")


def use_up_the_share(hub: RunningHub) -> None:
    """Let Bob take two of the course's three GPUs."""
    give(hub, "bob", "private-thesis", gpus=2)


def _servers(hub: RunningHub, user: str) -> dict[str, Any]:
    servers: dict[str, Any] = hub.api("GET", f"/users/{user}").json()["servers"]
    return servers

"""A hub with a line, and people who wait in it."""

from __future__ import annotations

from typing import Any

from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import ANSWER_AT_ONCE, T4, t4_nodes
from tests.hub.kept import LendHub
from tests.hub.running import RunningHub

QUEUE = """
c.GPUSpawner.queue = True
c.JupyterHub.cleanup_servers = False  # as the chart sets it
"""
LIMITS = "c.JupyterHub.concurrent_spawn_limit = 1\nc.JupyterHub.active_server_limit = 3\n"
HOLDER = "/api/v1/namespaces/default/pods/holder"
"""The pod of `hold`."""
WITH_A_LINE = T4 + ANSWER_AT_ONCE + QUEUE
WAITING: dict[str, Any] = {"accelerator": "t4", "wait": True}
WAITS = frozenset({201, 202})
"""The answers to a start that waits: after a failed start, the hub says 201 of the next one."""
_WAITED_FOR = "You are waiting for 1 × Tesla T4."
NEXT = f"You are next in line. {_WAITED_FOR}"
SECOND = f"You are in line: 1 person is ahead of you. {_WAITED_FOR}"


def behind(count: int) -> str:
    """What somebody reads who has at least two people ahead."""
    return f"You are in line: {count} people are ahead of you. {_WAITED_FOR}"


def a_hub_in_use(lend: LendHub, add_nodes: AddNodes, more: str = "") -> RunningHub:
    """Borrow a hub with a line and one GPU, which Alice has."""
    add_nodes(t4_nodes(1, 1))
    hub = lend(WITH_A_LINE + more)
    hub.start_until_ready("alice")
    return hub


def a_hub_without_room(
    lend: LendHub, add_nodes: AddNodes, cluster: LocalCluster, more: str = ""
) -> RunningHub:
    """Borrow a hub with a line and one GPU, which a pod of somebody else has."""
    [node] = add_nodes(t4_nodes(1, 1))
    hold(cluster, node, 1)
    return lend(WITH_A_LINE + more)


def hold(cluster: LocalCluster, node: str, gpus: int) -> None:
    """Let a pod of somebody else have so many GPUs of a node."""
    limits = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "c", "image": "x", "resources": {"limits": limits}}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]}
    path, name = HOLDER.rsplit("/", 1)
    cluster.api.create(path, {"metadata": {"name": name}, "spec": spec})


def told(hub: RunningHub, user: str) -> str:
    """Return what a waiting person reads first."""
    for event in hub.follow(user):
        if event["message"] != "Server requested":
            return str(event["message"])
    raise AssertionError("the stream has ended")


def wait_in_line(hub: RunningHub, user: str, says: str) -> None:
    """Let a user join the line by REST, who then reads this."""
    answer = hub.start(user, WAITING)
    assert answer.status_code in WAITS, answer.text
    said = told(hub, user)
    assert said == says, said

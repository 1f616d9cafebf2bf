"""A started view of a scripted server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from gpuspawner.cluster.following import Following
from gpuspawner.cluster.kinds import NODES, PODS, ObjectKind
from gpuspawner.cluster.retries import Backoff
from gpuspawner.cluster.view import ClusterView
from gpuspawner.scheduling.rules import DEFAULT_RULES, Rules
from tests.unit.makers.scripted import FAST, ScriptedServer, Step, obj, page, watch
from tests.waiting import UNIT_PATIENCE as PATIENCE

NODE = obj("n1", status={"allocatable": {"nvidia.com/gpu": "1", "pods": "110"}})
POD = obj("a", namespace="jhub", spec={"nodeName": "n1"})
AT_ONCE = replace(FAST, doubt=0.0)
"""The first answer that forbids something counts."""
CLAIMS = ObjectKind("PersistentVolumeClaim", "/api/v1/claims", required=False)
LIVE = "The view of the cluster is live."


@asynccontextmanager
async def viewing(
    kinds: tuple[ObjectKind, ...] = (NODES, PODS),
    backoff: Backoff = FAST,
    scaling_kinds: tuple[ObjectKind, ...] = (),
    rules: Rules | Callable[[str], Rules] = DEFAULT_RULES,
    queue_kinds: tuple[ObjectKind, ...] = (),
    **scripts: list[Step],
) -> AsyncIterator[tuple[ClusterView, ScriptedServer]]:
    """Start a view of a scripted server; a kind without a script has no objects and no events."""
    for plural in ("nodes", "pods"):
        scripts.setdefault(plural, [page(), watch(hold=True)])
    server = ScriptedServer(**scripts)
    async with server.serving():
        load = server.configuration
        view = ClusterView(load, kinds, backoff, rules, scaling_kinds, queue_kinds)
        view.start()
        try:
            yield view, server
        finally:
            await view.stop()


async def until(view: ClusterView | Following, true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await view.changed(0.05)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the lines of the health in the log."""
    said = [it.message for it in caplog.records if it.name == "gpuspawner.cluster.health_log"]
    return [line for line in said if "still reading" not in line]

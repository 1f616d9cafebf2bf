"""Live views for tests, and functions that wait for them without blocking their event loop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from kubernetes_asyncio import config
from kubernetes_asyncio.client import Configuration

from gpuspawner.cluster.kinds import SCALING_KINDS, ObjectKind
from gpuspawner.cluster.retries import Backoff
from gpuspawner.cluster.view import ClusterView
from gpuspawner.scheduling.state import ClusterState
from localcluster import LocalCluster
from tests.waiting import PATIENCE

T = TypeVar("T")

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"

#: Retries come sooner than in a hub, so that tests are quick.
BACKOFF = Backoff(first_retry=0.1, last_retry=0.5)


async def load(kubeconfig: Path) -> Configuration:
    """Return a client configuration for this kubeconfig's user."""
    configuration = Configuration()
    await config.load_kube_config(str(kubeconfig), client_configuration=configuration)
    return configuration


@asynccontextmanager
async def viewing(
    kubeconfig: Path, backoff: Backoff = BACKOFF, scaling_kinds: tuple[ObjectKind, ...] = ()
) -> AsyncIterator[ClusterView]:
    """Run a view as this kubeconfig's user."""
    view = ClusterView(partial(load, kubeconfig), backoff=backoff, scaling_kinds=scaling_kinds)
    view.start()
    try:
        yield view
    finally:
        await view.stop()


async def until(view: ClusterView, true: Callable[[], object]) -> None:
    """Wait until *true* returns true; check after each change of the view.

    Raises:
        TimeoutError: it was not within `PATIENCE`.
    """
    async with asyncio.timeout(PATIENCE):
        while not true():
            await view.changed(0.2)


async def until_autoscalers_are_known(view: ClusterView) -> None:
    """Wait until the view knows what each kind of an autoscaler has, or that the kind is absent."""
    await until(view, lambda: all(view.autoscalers.known(kind.name) for kind in SCALING_KINDS))


async def aside(call: Callable[[], T]) -> T:
    """Run a blocking call in a thread."""
    return await asyncio.to_thread(call)


def listed(cluster: LocalCluster) -> ClusterState:
    """Return the state that a fresh list shows."""
    return ClusterState.from_objects(nodes=cluster.api.items(NODES), pods=cluster.api.items(PODS))


def picture(state: ClusterState) -> dict[str, object]:
    """Return what decides in a state, in a form to compare."""
    return {
        "unbound": {key: pod.spec for key, pod in state.unbound_pods.items()},
        "pods": {key: (p.node, p.requested, p.terminating) for key, p in state.pods.items()},
        "nodes": {
            name: (info.labels, info.taints, info.allocatable, +_positive(info.requested))
            for name, info in state.nodes.items()
        },
    }


def _positive(amounts: Mapping[str, int]) -> Counter[str]:
    """Return the amounts as a Counter, whose unary plus drops zeros."""
    return Counter(amounts)


async def until_current(view: ClusterView, cluster: LocalCluster) -> None:
    """Wait until the view equals a fresh list.

    Raises:
        AssertionError: it did not within `PATIENCE`; the text shows the difference.
    """
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while True:
        fresh = picture(await aside(lambda: listed(cluster)))
        if picture(view.state) == fresh:
            return
        if asyncio.get_running_loop().time() > deadline:
            assert picture(view.state) == fresh
        await view.changed(0.2)

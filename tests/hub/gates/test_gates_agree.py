"""The three gates make the same decision for the same reason, on the same cluster."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from jupyterhub.utils import maybe_future
from traitlets.config import Config

from gpuspawner import GPUSpawner, runtime
from gpuspawner.start.refusal import Refusal
from gpuspawner.traits import ENFORCE, WARN
from localcluster import Fleet, LocalCluster
from tests.hub.in_process import hub_in_process
from tests.hub.option_sets import FLEET, GPU, OFFERS, OptionSet, as_form, option_sets

SEED = int(os.environ.get("GPUSPAWNER_SEED", "20261121"))
COUNT = 1000
PARTS = 4
MORE = pytest.mark.nightly(why="the first part already has every answer")
STARTS = "starts"


@pytest.fixture
def cluster(bare_cluster: LocalCluster) -> LocalCluster:
    """A cluster whose scheduler binds pods and where nothing runs them."""
    bare_cluster.check()
    return bare_cluster


@pytest.fixture
def namespace(cluster: LocalCluster, add_nodes: Callable[[Fleet], list[str]]) -> str:
    """The hub's namespace, on a cluster with one busy and one cordoned model."""
    add_nodes(FLEET)
    name = f"agree-{secrets.token_hex(4)}"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    amounts = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    container = {"name": "c", "image": "c:1", "resources": amounts}
    holder = {"nodeName": "busy-0", "containers": [container]}
    path = f"/api/v1/namespaces/{name}/pods"
    cluster.api.create(path, {"metadata": {"name": "holder"}, "spec": holder})
    cluster.api.patch("/api/v1/nodes/away-0", {"spec": {"unschedulable": True}})
    return name


@pytest_asyncio.fixture
async def spawner(
    cluster: LocalCluster, namespace: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[GPUSpawner]:
    c = Config()
    c.KubeSpawner.namespace = namespace
    c.KubeSpawner.delete_grace_period = 0
    c.JupyterHub.hub_connect_url = "http://hub:8081"
    c.GPUSpawner.update(dict(OFFERS))
    async with hub_in_process(monkeypatch, tmp_path, cluster.kubeconfig, GPUSpawner, c) as hub:
        made: GPUSpawner = hub.user("alice").spawner
        view = runtime.current(made).view
        assert await view.first_list(60)
        while f"{namespace}/holder" not in view.state.pods:
            assert await view.changed(60)
        yield made
        cluster.api.delete(f"/api/v1/namespaces/{namespace}/pods", grace=0)


class Gates:
    """The gates of one spawner, asked one by one."""

    def __init__(self, spawner: GPUSpawner, cluster: LocalCluster) -> None:
        self._spawner = spawner
        self._cluster = cluster
        self._view = runtime.current(spawner).view
        self._pod = f"{spawner.namespace}/{spawner.pod_name}"

    async def form(self, options: OptionSet) -> str:
        """Return the first gate's answer."""
        form = as_form(options)
        return await _answer(lambda: self._spawner.run_options_from_form(form))

    async def start(self, options: OptionSet) -> str:
        """Return the second gate's answer; if it starts, the reservation stays."""
        self._spawner.user_options = dict(options) or {"accelerator": None}
        return await _answer(self._spawner.run_pre_spawn_hook)

    async def pod(self, options: OptionSet, second: str) -> str:
        """Return the third gate's answer, even if the second has refused."""
        if second != STARTS:
            self._spawner.preflight = WARN
            try:
                assert await self.start(options) == STARTS
            finally:
                self._spawner.preflight = ENFORCE
        pod = await self._spawner.get_pod_manifest()
        answer = await _answer(lambda: self._spawner._make_create_pod_request(pod, 30))
        if answer == STARTS:
            await self._until(there=True)
            path = f"/api/v1/namespaces/{self._spawner.namespace}/pods/{self._spawner.pod_name}"
            self._cluster.api.delete(path, grace=0)
            await self._until(there=False)
        return answer

    def end(self) -> None:
        self._spawner.clear_state()

    async def _until(self, *, there: bool) -> None:
        """Wait for the view, so that all gates see the same cluster."""
        state = self._view.state
        while (self._pod in state.pods or self._pod in state.unbound_pods) != there:
            assert await self._view.changed(60)


async def _answer(gate: Callable[[], Any]) -> str:
    async def ask() -> str:
        try:
            await maybe_future(gate())
        except Refusal as refusal:
            return refusal.slug
        return STARTS

    # As in the hub, each request is a task with its own context.
    return await asyncio.create_task(ask())


@pytest.mark.parametrize(
    "part",
    [0, *(pytest.param(it, marks=MORE) for it in range(1, PARTS))],
)
async def test_all_gates_decide_alike_for_hundreds_of_option_sets(
    spawner: GPUSpawner, cluster: LocalCluster, part: int
) -> None:
    gates = Gates(spawner, cluster)
    size = COUNT // PARTS
    answers: Counter[str] = Counter()
    print(f"seed {SEED}")

    for options in islice(option_sets(SEED), part * size, (part + 1) * size):
        first = await gates.form(options)
        second = await gates.start(options)
        # Options that can't be read have no pod.
        third = first if first == "invalid-options" else await gates.pod(options, second)
        gates.end()
        assert (first, second, third) == (first, first, first), f"{options}, seed {SEED}"
        answers[first] += 1

    print(dict(answers))
    assert set(answers) == {STARTS, "invalid-options", "busy", "away", "impossible"}

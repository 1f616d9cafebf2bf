"""Pods that come and go while a benchmark measures a hub."""

from __future__ import annotations

import asyncio
import time

from localcluster import LocalCluster

_PATH = "/api/v1/namespaces/default/pods"
_PASSING, _HELD = "node-499", "node-0"
"""The nodes of pods that no form shows, and of one that all do."""


class ChangingPods:
    """Creates and deletes pods of a cluster with 500 nodes or more.

    Attributes:
        requests: How many the API server has got for that.
    """

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._changes = 0
        self.requests = 0

    async def change(self, seconds: float, changes_a_second: float) -> None:
        """Create and delete pods that no form shows, at a steady pace."""
        began = time.monotonic()
        for number in range(round(seconds * changes_a_second)):
            await asyncio.to_thread(self._change_one)
            await asyncio.sleep(max(0.0, began + number / changes_a_second - time.monotonic()))

    def hold(self) -> None:
        """Take a GPU that forms show."""
        self._create("holds-one", _HELD, {"nvidia.com/gpu": "1"})

    def let_go(self) -> None:
        """Free the GPU that `hold` has taken."""
        self._delete("holds-one")

    def _change_one(self) -> None:
        name = f"passing-{self._changes // 2}"
        if self._changes % 2:
            self._delete(name)
        else:
            self._create(name, _PASSING, {"cpu": "1"})
        self._changes += 1

    def _create(self, name: str, node: str, limits: dict[str, str]) -> None:
        container = {"name": "c", "image": "x", "resources": {"limits": limits}}
        spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container]}
        self.requests += 1
        self._cluster.api.create(_PATH, {"metadata": {"name": name}, "spec": spec})

    def _delete(self, name: str) -> None:
        self.requests += 1
        self._cluster.api.delete(f"{_PATH}/{name}", grace=0)

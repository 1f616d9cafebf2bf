"""The worker of one pod, with an API server that does things at awkward moments."""

from __future__ import annotations

import asyncio
from typing import Any

from localcluster.agent.addresses import Addresses
from localcluster.agent.images import NodeImages
from localcluster.agent.node_states import NodeStates
from localcluster.agent.runtime import ReportRuntime
from localcluster.agent.worker import Machine, PodWorker
from localcluster.client import Object

NODE = {
    "metadata": {"name": "gpu-0", "annotations": {"localcluster/kept": "true"}},
    "status": {"allocatable": {"pods": "9", "nvidia.com/gpu": "1"}},
}
POD: Object = {
    "metadata": {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "annotations": {"localcluster/device-error": "unavailable"},
    },
    "spec": {
        "nodeName": "gpu-0",
        "containers": [
            {"name": "x", "image": "x", "resources": {"requests": {"nvidia.com/gpu": "1"}}}
        ],
    },
    "status": {"phase": "Pending"},
}


class DeletingApi:
    """Somebody deletes the pod between the kubelet's event about it and its status."""

    worker: PodWorker

    def __init__(self) -> None:
        self.removed: list[str] = []

    async def get(self, _path: str) -> Object:
        return NODE

    async def create(self, _path: str, event: Object) -> Object:
        self.worker.see({**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "now"}})
        return event

    async def replace(self, _path: str, pod: Object) -> Object:
        return pod

    async def delete(self, path: str, _options: Object) -> None:
        self.removed.append(path)


async def test_a_refused_pod_that_is_deleted_before_it_has_failed_goes() -> None:
    api: Any = DeletingApi()
    machine = Machine(api, ReportRuntime(), NodeStates(), NodeImages(api), Addresses())
    api.worker = PodWorker(machine, POD, lambda _: [])

    await asyncio.wait_for(api.worker.run(), 10)

    assert api.removed == ["/api/v1/namespaces/n/pods/p"]

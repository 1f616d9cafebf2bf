"""Pods of servers, as the API server shows them."""

from __future__ import annotations

import json
from typing import Any

from gpuspawner.compat.people import label_of
from gpuspawner.kube.objects import decode
from gpuspawner.kube.servers import GRANT, SERVER, USER, ServerPod

Plain = dict[str, Any]

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.5gb"


def container(**amounts: object) -> Plain:
    """Make a container that requests these amounts; `gpu` is short for NVIDIA's resource."""
    requests = {GPU if it == "gpu" else it: str(amount) for it, amount in amounts.items()}
    return {"name": "notebook", "resources": {"requests": requests, "limits": requests}}


def started(pulled: str, began: str) -> Plain:
    """Make the status of a pod that has pulled its image since one time, and runs since another."""
    state = {"running": {"startedAt": began}}
    return {"startTime": pulled, "containerStatuses": [{"name": "notebook", "state": state}]}


def labels_of(user: str, server: str = "") -> dict[str, str]:
    """The labels that KubeSpawner gives to a user's pod."""
    return {USER: label_of(user), SERVER: label_of(server)}


def annotations_of(user: str, server: str = "", grant: object = None) -> dict[str, str]:
    """The annotations that KubeSpawner and gpuspawner give to a user's pod."""
    written = {USER: user}
    if server:
        written[SERVER] = server
    if grant is not None:
        written[GRANT] = grant if isinstance(grant, str) else json.dumps(grant)
    return written


def plain(
    user: str = "ann",
    server: str = "",
    *,
    name: str = "",
    grant: object = None,
    metadata: Plain | None = None,
    **spec: object,
) -> Plain:
    """Make the pod of a user's server; *metadata* and *spec* replace fields."""
    meta = {
        "name": name or f"jupyter-{user}--{server}",
        "namespace": "jhub",
        "labels": labels_of(user, server),
        "annotations": annotations_of(user, server, grant),
    }
    meta["uid"] = f"uid of {meta['name']}"
    return {
        "metadata": {**meta, **(metadata or {})},
        "spec": {"containers": [container(gpu=1)], **spec},
    }


def read(pod: Plain) -> ServerPod:
    """Read a pod as a watch does."""
    found = decode("ServerPod", json.dumps(pod).encode())
    assert isinstance(found, ServerPod), found
    return found


def server_pod(user: str = "ann", server: str = "", **fields: Any) -> ServerPod:
    """Make and read the pod of a user's server."""
    return read(plain(user, server, **fields))

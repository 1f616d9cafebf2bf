"""The history of a namespace's pods, read from the API server itself, in its order."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from localcluster import LocalCluster
from tests.race.following import Event, Following
from tests.race.limits import Books, Limit, Server

_OWNER, _NAME = "hub.jupyter.org/username", "hub.jupyter.org/servername"
_GPU = "nvidia.com/gpu"


class History:
    """Follows the pods by a watch of its own, which passes neither the hub nor a proxy.

    A pod counts from its creation until it is gone, by the resources in its own specification.

    Args:
        cluster: The cluster of the pods.
        namespace: It must have no pods when the history begins.
        limits: What is checked after each change.

    Attributes:
        created: How many pods were created.
        exceeded: A sentence for each change after which a limit was exceeded.
    """

    def __init__(self, cluster: LocalCluster, namespace: str, limits: Iterable[Limit]) -> None:
        self.created = 0
        self.exceeded: list[str] = []
        self._books = Books(limits)
        self._held: dict[str, Server] = {}
        self._following = Following(cluster, namespace, self.take)

    @property
    def peaks(self) -> dict[str, int]:
        """The most that anybody held at once, by limit."""
        return dict(self._books.peaks)

    @property
    def is_empty(self) -> bool:
        """Whether all pods are gone."""
        return not self._held

    @property
    def errors(self) -> list[str]:
        """Why the history may have gaps."""
        return self._following.errors

    def following(self) -> AbstractContextManager[None]:
        """Follow the pods while the block lasts."""
        return self._following.following()

    def take(self, event: Event) -> None:
        """Count a change of a pod."""
        pod = event["object"]
        version, uid = pod["metadata"]["resourceVersion"], pod["metadata"].get("uid", "")
        if event["type"] == "ADDED":
            self.created += 1
            self._held[uid] = server = read(pod)
            exceeded = self._books.add(server)
            self.exceeded += [f"version {version}, {server}: {it}" for it in exceeded]
        elif event["type"] == "DELETED":
            self._books.remove(self._held.pop(uid))


def read(pod: dict[str, Any]) -> Server:
    """Return the server of a pod, by its annotations and its resources."""
    annotations = pod["metadata"].get("annotations", {})
    spec = pod["spec"]
    gpus = sum(
        int(container.get("resources", {}).get("limits", {}).get(_GPU, 0))
        for container in spec["containers"]
    )
    accelerator = (spec.get("nodeSelector") or {}).get("gpu", "")
    return Server(annotations[_OWNER], annotations.get(_NAME, ""), accelerator, gpus)

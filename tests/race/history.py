"""The history of a namespace's pods, read from the API server itself, in its order."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import requests

from localcluster import LocalCluster
from tests.race.beside import beside
from tests.race.limits import Books, Limit, Server

_OWNER, _NAME = "hub.jupyter.org/username", "hub.jupyter.org/servername"
_GPU = "nvidia.com/gpu"
# Short, so that the thread ends soon after the race.
_WATCH_SECONDS = 3


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
        errors: Why the history may have gaps.
    """

    def __init__(self, cluster: LocalCluster, namespace: str, limits: Iterable[Limit]) -> None:
        self.created = 0
        self.exceeded: list[str] = []
        self.errors: list[str] = []
        self._cluster = cluster
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._books = Books(limits)
        self._held: dict[str, Server] = {}
        self._over = threading.Event()

    @property
    def peaks(self) -> dict[str, int]:
        """The most that anybody held at once, by limit."""
        return dict(self._books.peaks)

    @property
    def is_empty(self) -> bool:
        """Whether all pods are gone."""
        return not self._held

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow the pods while the block lasts."""
        listed = self._cluster.api.get(self._path)
        assert not listed["items"], "the namespace has pods before the race"
        version = listed["metadata"]["resourceVersion"]
        with beside(partial(self._follow, version), self._over):
            yield

    def take(self, event: dict[str, Any]) -> str:
        """Count a change of a pod; return its version."""
        pod = event["object"]
        version, uid = pod["metadata"]["resourceVersion"], pod["metadata"].get("uid", "")
        if event["type"] == "ADDED":
            self.created += 1
            self._held[uid] = server = read(pod)
            exceeded = self._books.add(server)
            self.exceeded += [f"version {version}, {server}: {it}" for it in exceeded]
        elif event["type"] == "DELETED":
            self._books.remove(self._held.pop(uid))
        return str(version)

    def _follow(self, version: str) -> None:
        while not self._over.is_set():
            try:
                for event in self._watch(version):
                    version = self.take(event)
            except requests.ConnectionError:
                continue  # the next watch goes on where this one ended
            except Exception as error:  # noqa: BLE001, the race fails by it
                self.errors.append(repr(error))
                return

    def _watch(self, version: str) -> Iterator[dict[str, Any]]:
        query: dict[str, str | int] = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": _WATCH_SECONDS,
        }
        with requests.get(
            self._cluster.url + self._path,
            params=query,
            headers={"Authorization": f"Bearer {self._cluster.token}"},
            verify=str(self._cluster.ca),
            stream=True,
            timeout=30,
        ) as answer:
            answer.raise_for_status()
            for line in answer.iter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise RuntimeError(f"the watch lost its place: {event['object']}")
                yield event


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

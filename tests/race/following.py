"""Follows the pods of a namespace by a watch that passes neither the hub nor a proxy."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import requests

from localcluster import LocalCluster
from tests.race.beside import beside

Event = dict[str, Any]
# Short, so that the thread ends soon after the race.
_WATCH_SECONDS = 3


_EXPIRED = 410


class _ExpiredError(Exception):
    """The API server no longer knows what has changed since."""


class Following:
    """Hands each change of a pod to *take*, in the API server's order.

    The namespace must have no pods when this begins.

    Attributes:
        errors: Why there may be gaps.
    """

    def __init__(
        self, cluster: LocalCluster, namespace: str, take: Callable[[Event], None]
    ) -> None:
        self.errors: list[str] = []
        self._cluster = cluster
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._take = take
        self._over = threading.Event()
        self._known: dict[str, Any] = {}

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow the pods while the block lasts."""
        listed = self._cluster.api.get(self._path)
        assert not listed["items"], "the namespace has pods before the race"
        version = listed["metadata"]["resourceVersion"]
        with beside(partial(self._follow, version), self._over):
            yield

    def _follow(self, version: str) -> None:
        while not self._over.is_set():
            try:
                for event in self._watch(version):
                    version = str(event["object"]["metadata"]["resourceVersion"])
                    self._hand_over(event)
            except _ExpiredError:
                version = self._read_again()
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
                continue  # the next watch goes on where this one ended
            except Exception as error:  # noqa: BLE001, the race fails by it
                self.errors.append(repr(error))
                return

    def _hand_over(self, event: Event) -> None:
        pod = event["object"]
        if event["type"] == "DELETED":
            self._known.pop(pod["metadata"]["uid"], None)
        elif event["type"] != "BOOKMARK":
            self._known[pod["metadata"]["uid"]] = pod
        self._take(event)

    def _read_again(self) -> str:
        """Read the list, because a restarted API server has forgotten the changes."""
        listed = self._cluster.api.get(self._path)
        present = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
        for uid in self._known.keys() - present.keys():
            self._hand_over({"type": "DELETED", "object": self._known[uid]})
        for uid in present.keys() - self._known.keys():
            self._hand_over({"type": "ADDED", "object": present[uid]})
        return str(listed["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> Iterator[Event]:
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
            for line in answer.iter_lines(chunk_size=2**16):  # as they come; at most so much
                event = json.loads(line)
                if event["type"] == "ERROR" and event["object"].get("code") == _EXPIRED:
                    raise _ExpiredError
                if event["type"] == "ERROR":
                    raise RuntimeError(f"the watch lost its place: {event['object']}")
                yield event

"""The history of a namespace's pods, read from the API server itself, in its order."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from threading import Event

import requests

from localcluster import LocalCluster
from tests.race.limits import Books, Server
from tests.race.stage import Object, beside, gpus_of

_OWNER, _NAME = "hub.jupyter.org/username", "hub.jupyter.org/servername"
# Short, so that the thread ends soon after the race.
_WATCH_SECONDS = 3
_EXPIRED = 410  # the API server no longer knows what has changed since


@dataclass(frozen=True)
class Change:
    """A pod was created, or is gone since then; *at* is by the monotonic clock."""

    at: float
    pod: Object
    is_new: bool


class History:
    """Follows the pods by a watch of its own, which passes neither the hub nor a proxy.

    The namespace must have no pods when this begins.

    Attributes:
        changes: All changes so far.
        errors: Why there may be gaps.
    """

    def __init__(self, cluster: LocalCluster, namespace: str) -> None:
        self.changes: list[Change] = []
        self.errors: list[str] = []
        self._cluster = cluster
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._version = ""
        self._present: dict[str, Object] = {}

    @property
    def is_over(self) -> bool:
        """Whether all pods are gone, or nothing more will be known."""
        return not self._present or bool(self.errors)

    @property
    def created(self) -> list[str]:
        """Whose pods were created, in order."""
        return [
            change.pod["metadata"]["annotations"][_OWNER]
            for change in self.changes
            if change.is_new
        ]

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow the pods while the block lasts."""
        self._read_again()
        assert not self._present, "the namespace has pods before the race"
        with beside(self._follow):
            yield

    def _follow(self, over: Event) -> None:
        while not over.is_set():
            try:
                self._watch()
            except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError):
                continue  # the next watch goes on where this one ended
            except Exception as error:  # noqa: BLE001, the race fails by it
                self.errors.append(repr(error))
                return

    def _watch(self) -> None:
        query: dict[str, str | int] = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
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
                kind, pod = event["type"], event["object"]
                if kind == "ERROR" and pod.get("code") == _EXPIRED:
                    self._read_again()
                    return
                if kind == "ERROR":
                    raise RuntimeError(f"the watch lost its place: {pod}")
                self._version = str(pod["metadata"]["resourceVersion"])
                if kind in ("ADDED", "DELETED"):
                    self._note(pod, is_new=kind == "ADDED")

    def _read_again(self) -> None:
        """Read the list, because a restarted API server has forgotten the changes."""
        listed = self._cluster.api.get(self._path)
        there = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
        for uid in self._present.keys() - there.keys():
            self._note(self._present[uid], is_new=False)
        for uid in there.keys() - self._present.keys():
            self._note(there[uid], is_new=True)
        self._version = str(listed["metadata"]["resourceVersion"])

    def _note(self, pod: Object, *, is_new: bool) -> None:
        if is_new:
            self._present[pod["metadata"]["uid"]] = pod
        else:
            del self._present[pod["metadata"]["uid"]]
        self.changes.append(Change(time.monotonic(), pod, is_new))


def exceeded(changes: Iterable[Change], books: Books) -> list[str]:
    """Write what the pods use of limits into the books; return when a limit was exceeded.

    A pod counts from its creation until it is gone, by the resources in its own specification.
    """
    found = []
    for change in changes:
        server, version = server_of(change.pod), change.pod["metadata"]["resourceVersion"]
        if change.is_new:
            found += [f"version {version}, {server}: {it}" for it in books.add(server)]
        else:
            books.remove(server)
    return found


def server_of(pod: Object) -> Server:
    """Return the server of a pod, by its annotations and its resources."""
    annotations = pod["metadata"]["annotations"]
    accelerator = (pod["spec"].get("nodeSelector") or {}).get("gpu", "")
    return Server(annotations[_OWNER], annotations.get(_NAME, ""), accelerator, gpus_of(pod))


def most_at_once(changes: Iterable[Change]) -> int:
    """Return how many pods were there at once, at most."""
    return max(accumulate(1 if change.is_new else -1 for change in changes), default=0)


def idle_times(
    changes: Iterable[Change], people: int, absent: Sequence[tuple[float, float]]
) -> list[float]:
    """Return for how long each GPU stayed free after its pod was gone, in seconds.

    Args:
        changes: Of pods with one GPU each.
        people: How many will have a pod; after that, free GPUs have nobody to wait for.
        absent: When nobody could start, from and until; this time doesn't count.
    """
    freed, times, created = deque[float](), list[float](), 0
    for change in changes:
        if not change.is_new and created + len(freed) < people:
            freed.append(change.at)
        created += change.is_new
        if change.is_new and freed:
            begin, end = freed.popleft(), change.at
            away = sum(max(0.0, min(end, until) - max(begin, since)) for since, until in absent)
            times.append(end - begin - away)
    return times

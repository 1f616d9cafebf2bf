"""When pods came and went, each with one GPU."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from localcluster import LocalCluster
from tests.race.following import Event, Following

_USER = "hub.jupyter.org/username"


class Timeline:
    """Reads it from the API server itself.

    Args:
        people: How many will have a pod; after that, free GPUs have nobody to wait for.

    Attributes:
        created: Whose pods were created, in order.
        most: The most pods at once.
        they: What these were: how many of each phase, with how many GPUs.
        idle: From when to when a GPU stayed free after its pod was gone, by the monotonic clock.
    """

    def __init__(self, cluster: LocalCluster, namespace: str, people: int) -> None:
        self.created: list[str] = []
        self.most = 0
        self.they: Counter[str] = Counter()
        self.idle: list[tuple[float, float]] = []
        self._people = people
        self._present: dict[str, Any] = {}
        self._freed: deque[float] = deque()
        self._following = Following(cluster, namespace, self._take)

    @property
    def errors(self) -> list[str]:
        """Why there may be gaps."""
        return self._following.errors

    def following(self) -> AbstractContextManager[None]:
        """Follow the pods while the block lasts."""
        return self._following.following()

    def longest_idle(self, absent: Sequence[tuple[float, float]]) -> float:
        """Return the longest of these times, in seconds, without those when nobody could start."""
        return max((_without(begin, end, absent) for begin, end in self.idle), default=0.0)

    def _take(self, event: Event) -> None:
        metadata, now = event["object"]["metadata"], time.monotonic()
        if event["type"] == "ADDED":
            self.created.append(metadata["annotations"][_USER])
            if self._freed:
                self.idle.append((self._freed.popleft(), now))
        if event["type"] == "DELETED":
            self._present.pop(metadata["uid"], None)
            if len(self.created) + len(self._freed) < self._people:
                self._freed.append(now)
        elif event["type"] != "BOOKMARK":
            self._present[metadata["uid"]] = event["object"]
        if len(self._present) > self.most:
            self.most = len(self._present)
            self.they = Counter(map(_what, self._present.values()))


def _what(pod: Any) -> str:
    limits = pod["spec"]["containers"][0]["resources"].get("limits", {})
    return f"{pod['status'].get('phase')} with {limits.get('nvidia.com/gpu', 'no')} GPU"


def _without(begin: float, end: float, absent: Sequence[tuple[float, float]]) -> float:
    """Return how long a time is without its overlap with others."""
    overlaps = (min(end, until) - max(begin, since) for since, until in absent)
    return end - begin - sum(max(0.0, it) for it in overlaps)

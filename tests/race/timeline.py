"""When pods came and went, each with one GPU."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager

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
        idle: From when to when a GPU stayed free after its pod was gone, by the monotonic clock.
    """

    def __init__(self, cluster: LocalCluster, namespace: str, people: int) -> None:
        self.created: list[str] = []
        self.most = 0
        self.idle: list[tuple[float, float]] = []
        self._people = people
        self._present: set[str] = set()
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
            self._present.add(metadata["uid"])
            if self._freed:
                self.idle.append((self._freed.popleft(), now))
        elif event["type"] == "DELETED":
            self._present.discard(metadata["uid"])
            if len(self.created) + len(self._freed) < self._people:
                self._freed.append(now)
        self.most = max(self.most, len(self._present))


def _without(begin: float, end: float, absent: Sequence[tuple[float, float]]) -> float:
    """Return how long a time is without its overlap with others."""
    overlaps = (min(end, until) - max(begin, since) for since, until in absent)
    return end - begin - sum(max(0.0, it) for it in overlaps)

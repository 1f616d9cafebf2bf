"""All users' servers, polled once for all threads: a hundred pollers would stop the hub."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import requests

from tests.hub.running import RunningHub
from tests.race.beside import beside

Server = dict[str, Any]


class Servers:
    """The servers of all users, as of a moment ago.

    Methods without a server's name are about the default server.

    Args:
        hub: The hub to ask.
    """

    def __init__(self, hub: RunningHub) -> None:
        self._hub = hub
        self._news = threading.Condition()
        self._asked = 0
        self._servers: dict[str, dict[str, Server]] = {}
        self._over = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Poll twice a second while the block lasts."""
        with beside(self._watch, self._over):
            yield

    def now(self, user: str, name: str = "") -> Server:
        """Return a user's server as of the last poll; {} for none."""
        return self._servers.get(user, {}).get(name, {})

    def wait_for(
        self, user: str, true: Callable[[Server], object], timeout: float, name: str = ""
    ) -> Server:
        """Wait until a user's server, as of later polls, satisfies *true*; return it, {} for none.

        Raises:
            TimeoutError: It did not within *timeout* seconds.
        """
        with self._news:
            # The answer to a poll that has begun may be older than this call.
            asked = self._asked + 2
            if not self._news.wait_for(
                lambda: self._asked >= asked and true(self.now(user, name)), timeout
            ):
                raise TimeoutError(f"{user}: {self._servers.get(user)} after {timeout} s")
            return self.now(user, name)

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            try:
                answer = self._hub.api("GET", "/users?limit=1000")
                answer.raise_for_status()
                users = answer.json()
            except requests.RequestException:
                continue
            with self._news:
                self._servers = {user["name"]: user["servers"] for user in users}
                self._asked += 1
                self._news.notify_all()

"""One user attacks the hub while another user starts servers."""

from __future__ import annotations

import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from threading import Event

import requests

from tests.attack.bodies import hostile_bodies
from tests.waiting import wait_for

LOOPS = 150
STARTS = 3
_SENDERS = 8


@dataclass
class Report:
    """The outcome of an attack.

    Attributes:
        usual: Median time of another user's start before the attack, in seconds.
        meanwhile: Median time of another user's start during the attack, in seconds.
        answers: How often each status answered a hostile start; 0 for no answer.
        decisions: The same for the decision endpoint.
    """

    usual: float
    meanwhile: float
    answers: Counter[int]
    decisions: Counter[int]

    @property
    def ratio(self) -> float:
        return self.meanwhile / self.usual


class HarmedError(Exception):
    """Another user got no server."""


class Attack:
    """Attacks a hub.

    Args:
        url: The hub's address, without ``/hub``.
        token: A token that may create users and their tokens.
    """

    def __init__(self, url: str, token: str) -> None:
        self._url = f"{url.rstrip('/')}/hub"
        self._tokens = {"": token}

    def prepare(self) -> None:
        """Make both users, and their tokens."""
        for user in ("mallory", "alice"):
            self._call("POST", f"/api/users/{user}")
            # The hub checks a token that it issued a hundred times faster than a configured one.
            made = self._request("POST", f"/api/users/{user}/tokens")
            self._tokens[user] = made.json()["token"]

    def run(self, count: int, seed: int) -> Report:
        """Send *count* hostile starts, and at the same time loop on the decision endpoint."""
        self.prepare()
        usual = statistics.median(self.seconds_of_a_start() for _ in range(STARTS))
        answers: Counter[int] = Counter()
        with self._loops() as decisions, ThreadPoolExecutor(_SENDERS) as senders:
            sent = [senders.submit(self._start, it) for it in islice(hostile_bodies(seed), count)]
            meanwhile = statistics.median(self.seconds_of_a_start() for _ in range(STARTS))
            answers.update(it.result() for it in sent)
        return Report(usual, meanwhile, answers, decisions)

    def lives(self) -> bool:
        return self._call("GET", "/health") == 200

    @contextmanager
    def _loops(self) -> Iterator[Counter[int]]:
        over, answered = Event(), Counter[int]()
        body = json.dumps({"accelerator": "t4", "gpus": 2}).encode()

        def loop() -> None:
            while not over.is_set():
                answered[self._call("POST", "/gpuspawner/decision/mallory/", body, "mallory")] += 1

        with ThreadPoolExecutor(LOOPS) as threads:
            loops = [threads.submit(loop) for _ in range(LOOPS)]
            try:
                yield answered
            finally:
                over.set()
                for each in loops:
                    each.result()

    def _start(self, body: bytes) -> int:
        return self._call("POST", "/api/users/mallory/server", body, "mallory")

    def seconds_of_a_start(self) -> float:
        """Start and stop Alice's server; return how long the start took."""
        path = "/api/users/alice/server"
        began = time.monotonic()
        status = self._call("POST", path, user="alice")
        wait_for(lambda: self._server_of_alice().get("pending") != "spawn", timeout=120)
        if not self._server_of_alice().get("ready"):
            raise HarmedError(f"another person's start was answered {status}, and then failed")
        seconds = time.monotonic() - began
        self._call("DELETE", path, user="alice")
        wait_for(lambda: not self._server_of_alice(), timeout=120)
        return seconds

    def _server_of_alice(self) -> dict[str, object]:
        try:
            answer = self._request("GET", "/api/users/alice", user="alice")
        except requests.RequestException:
            return {"pending": "nobody knows"}
        servers: dict[str, dict[str, object]] = answer.json().get("servers", {})
        return servers.get("", {})

    def _call(self, method: str, path: str, body: bytes | None = None, user: str = "") -> int:
        try:
            return self._request(method, path, body, user).status_code
        except requests.RequestException:
            return 0

    def _request(
        self, method: str, path: str, body: bytes | None = None, user: str = ""
    ) -> requests.Response:
        """Call the hub as *user*; "" uses the token of the attack."""
        headers = {"Authorization": f"token {self._tokens[user]}", "Connection": "close"}
        with requests.Session() as session:
            session.trust_env = False
            return session.request(
                method, f"{self._url}{path}", data=body, headers=headers, timeout=120
            )

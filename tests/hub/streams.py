"""Open forms without a browser: they follow a hub's stream as the form's script does."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests

from tests.hub.people import Person
from tests.waiting import wait_for


@dataclass
class OpenForm:
    """A form that follows its stream in a thread.

    Attributes:
        answer: The hub's answer, whose body is still under way.
        events: What has come so far, each with the time by the monotonic clock.
        last: The name of the last event; "" for one with states.
        is_over: Whether the stream has ended.
    """

    answer: requests.Response
    events: list[tuple[float, Any]] = field(default_factory=list)
    last: str = ""
    is_over: bool = False

    def read(self) -> None:
        with suppress(requests.RequestException, OSError, AttributeError, ValueError):
            for line in self.answer.iter_lines(chunk_size=1):
                name, _, value = line.decode().partition(": ")
                if name == "event":
                    self.last = value
                elif name == "data" and value:
                    self.events.append((time.monotonic(), json.loads(value)))
        self.is_over = True

    def until(self, shows: Callable[[Any], bool]) -> float:
        """Wait until the last event is like that; return when it came."""
        wait_for(lambda: bool(self.events) and shows(self.events[-1][1]))
        return self.events[-1][0]


@contextmanager
def following(person: Person, server: str = "", **headers: str) -> Iterator[OpenForm]:
    """Follow the stream of a person's form until the block ends."""
    person.open("/hub/home")
    with following_at(
        f"{person.hub.url}/hub/gpuspawner/stream/{person.name}/{server}",
        person.session,
        {"Sec-Fetch-Mode": "cors", "X-XSRFToken": person.xsrf, **headers},
    ) as form:
        yield form


@contextmanager
def following_at(
    url: str, session: requests.Session, headers: dict[str, str]
) -> Iterator[OpenForm]:
    """Follow the stream at an address until the block ends."""
    answer = session.get(url, headers=headers, stream=True)
    form = OpenForm(answer)
    thread = threading.Thread(target=form.read, daemon=True)
    thread.start()
    try:
        yield form
    finally:
        with suppress(Exception):
            answer.raw._fp.fp.raw._sock.shutdown(socket.SHUT_RDWR)
        answer.close()
        thread.join(10)


def state_of(states: Any, key: str | None) -> str:
    """The state of an accelerator in an event."""
    found: str = next(it["state"] for it in states["accelerators"] if it["accelerator"] == key)
    return found


def connect(url: str) -> socket.socket:
    """Connect to a hub without reading anything, with the smallest buffers."""
    parts = urlsplit(url)
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    made.connect((parts.hostname, parts.port))
    return made

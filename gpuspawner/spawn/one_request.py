"""One request at a time starts a server.

The hub looks whether a server is starting before it asks the spawner; if it finds out later, it
answers HTTP 500. Between the gate's answer and the hub's own mark lie some ticks.
"""

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from gpuspawner import messages
from gpuspawner.spawn import drafts
from gpuspawner.spawn.host import Host
from gpuspawner.spawn.refusal import Refusal

_passed: WeakValueDictionary[tuple[str, str], asyncio.Task[Any]] = WeakValueDictionary()
"""The requests whose form or query has passed the gate, by user and server, until they end."""


class AlreadyStartedError(Refusal):
    """The refusal of this request alone: the start that is under way goes on, and isn't counted."""

    def __init__(self) -> None:
        super().__init__(messages.already_started(), reason="already-started", status=400)
        self.is_reported = True  # nothing about the server has been refused


def check(spawner: Host) -> None:
    """Check that no other request has begun to start the server meanwhile.

    Raises:
        AlreadyStartedError: The server is starting or running, or another request is about to
            start it.
    """
    current = spawner.user.spawners.get(spawner.name)
    other = _passed.get((spawner.user.name, spawner.name))
    another_starts_it = other is not None and not other.done() and other is not _request()
    if another_starts_it or (current is not None and current.active):
        raise AlreadyStartedError


def go_on(spawner: Host) -> None:
    """Let this request, and no other until it ends, go on to start the server.

    Raises:
        AlreadyStartedError: As :func:`check`.
    """
    check(spawner)
    if (request := _request()) is not None:
        _passed[spawner.user.name, spawner.name] = request


def _request() -> asyncio.Task[Any] | None:
    draft = drafts.current()
    return draft.request if draft is not None else None

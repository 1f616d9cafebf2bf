"""Let only one request at a time start a server.

Some ticks pass between the gate's answer and the moment the hub marks the server as starting. If
another request starts it meanwhile, the hub finds out too late and answers HTTP 500.
"""

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from gpuspawner import messages
from gpuspawner.gates import drafts
from gpuspawner.gates.host import Host
from gpuspawner.gates.refusal import Refusal

_passed: WeakValueDictionary[tuple[str, str], asyncio.Task[Any]] = WeakValueDictionary()
"""Requests whose form or query has passed the gate, by user and server, until they end."""


class AlreadyStartedError(Refusal):
    """Refuses only this request: the current start goes on, and the hub counts no failure."""

    def __init__(self) -> None:
        super().__init__(messages.already_started(), reason="already-started", status=400)
        self.is_reported = True  # nothing about the server has been refused


def check(spawner: Host) -> None:
    """Check that no other request has started the server, or is about to.

    Raises:
        AlreadyStartedError: One has.
    """
    current = spawner.user.spawners.get(spawner.name)
    other = _passed.get((spawner.user.name, spawner.name))
    another_starts_it = other is not None and not other.done() and other is not _request()
    if another_starts_it or (current is not None and current.active):
        raise AlreadyStartedError


def go_on(spawner: Host) -> None:
    """Let this request start the server, and no other until this one ends.

    Raises:
        AlreadyStartedError: As :func:`check`.
    """
    check(spawner)
    if (request := _request()) is not None:
        _passed[spawner.user.name, spawner.name] = request


def _request() -> asyncio.Task[Any] | None:
    draft = drafts.current()
    return draft.request if draft is not None else None

"""The form or query of a request, kept until the hub redraws the form in the same request.

The hub redraws the form of a named server with the spawner of the default server. Both serve one
request, so they share a context, and the source of the named server draws.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import msgspec

from gpuspawner.messages import OnForm
from gpuspawner.start.source import ServerSource


class Draft(msgspec.Struct):
    """The form or query of one request.

    Attributes:
        options: As sent.
        refused: Why; None if they weren't.
        request: The task in which the hub answers.
        source: Returns what the server that they are for is chosen from.
    """

    options: object
    refused: OnForm | None = None
    request: asyncio.Task[Any] | None = None
    source: Callable[[], ServerSource] | None = None


_draft: ContextVar[Draft | None] = ContextVar("gpuspawner_draft", default=None)


def keep(options: object, source: Callable[[], ServerSource] | None = None) -> Draft:
    """Keep this request's options. Call it in the hub's own task, before any await."""
    kept = Draft(options, request=asyncio.current_task(), source=source)
    _draft.set(kept)
    return kept


def current() -> Draft | None:
    """The draft of this request; None if it has neither form nor query."""
    return _draft.get()


def refuse(shown: OnForm) -> None:
    """Show *shown* on the form that the hub redraws in this request, if the request has a draft."""
    if (draft := _draft.get()) is not None:
        draft.refused = shown

"""What a request has sent, kept for the form that is drawn again in the same request.

The hub draws that form with another spawner object than the one that refused, the default server's
even for a named server. Both belong to one request, and so to one context.
"""

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from gpuspawner.messages import OnForm


@dataclass
class Draft:
    """The form or query of one request.

    Attributes:
        options: The options as sent.
        refused: Why they were refused; None while they are not.
        request: The task in which the hub answers this request.
    """

    options: object
    refused: OnForm | None = None
    request: asyncio.Task[Any] | None = None


_draft: ContextVar[Draft | None] = ContextVar("gpuspawner_draft", default=None)


def keep(options: object) -> Draft:
    """Remember what this request holds. To be called in the hub's own task, before any await."""
    kept = Draft(options, request=asyncio.current_task())
    _draft.set(kept)
    return kept


def current() -> Draft | None:
    """What a form or query of this request holds; None for a page that was merely opened."""
    return _draft.get()


def refuse(shown: OnForm) -> None:
    """Have the form that is drawn again in this request show why, if it is a form's request."""
    if (draft := _draft.get()) is not None:
        draft.refused = shown

"""A place in line, as the hub stores it.

A hub without a line reads it too: an earlier configuration may have had one.
"""

import time
from collections.abc import Mapping
from enum import StrEnum

import msgspec

OPTION = "wait"
"""The name of the option, and of the form's button."""
_FUTURE_SECONDS = 60.0


class Wish(StrEnum):
    """What somebody wants who waits in line."""

    NOT = "not"
    """They don't wait."""
    HERE = "here"
    """The server starts only while its owner has the page open."""
    ANYWAY = "anyway"
    """It starts as soon as there is room."""


class KeptPlace(msgspec.Struct, frozen=True):
    """A place in line.

    Attributes:
        since: When it was taken, in seconds since the epoch.
        options: What the server is, without the wish to wait.
    """

    since: float
    wish: Wish
    options: Mapping[str, object] = {}

    def written(self) -> dict[str, object]:
        """Return it as the hub stores it."""
        return {"since": self.since, "wish": self.wish.value, "options": dict(self.options)}

    @classmethod
    def read(cls, stored: object) -> "KeptPlace | None":
        """Read what the hub has stored; None if it is no place."""
        if not isinstance(stored, Mapping):
            return None
        since, wish, options = map(stored.get, ("since", "wish", "options"))
        if wish not in (Wish.HERE, Wish.ANYWAY) or not isinstance(since, int | float):
            return None
        if not isinstance(options, Mapping):
            return None
        is_past = 0 <= since <= time.time() + _FUTURE_SECONDS
        return cls(float(since), Wish(wish), options) if is_past else None

"""Finds out what a text is about by the phrases in it."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from gpuspawner.troubles.trouble import About, Fault, Kind

_LONGEST = 8192

_Told = TypeVar("_Told")
FaultPatterns = Iterable[tuple[re.Pattern[str], Kind]]
"""What is wrong if a text has one of these; named groups say what that is about."""


def beginning(text: str) -> str:
    """Return as much of a text as is read: an attempt to match may start at each character."""
    return text[:_LONGEST]


def reader(phrases: Mapping[_Told, Iterable[str]]) -> Callable[[str], _Told | None]:
    """Return what tells by regular expressions what a text is about; None if it has none of them.

    Upper and lower case are the same. The first kind with a phrase in the text counts.
    """
    compiled = [(re.compile("|".join(its), re.IGNORECASE), told) for told, its in phrases.items()]

    # Each start reads all its texts again every second; a hostile one takes a tenth of that.
    @lru_cache(maxsize=1024)
    def read(text: str) -> _Told | None:
        return next((told for phrase, told in compiled if phrase.search(text)), None)

    return read


def first(text: str, patterns: FaultPatterns) -> Fault | None:
    """Return the fault of the first pattern that a text has; None if it has none."""
    for pattern, kind in patterns:
        if found := pattern.search(text):
            named: dict[str, Any] = found.groupdict()
            return Fault(kind, About(**named))
    return None

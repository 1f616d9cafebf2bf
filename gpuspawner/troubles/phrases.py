"""Finds out what a text is about by the phrases in it."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from gpuspawner.troubles.trouble import About, Fault, Kind

_LONGEST = 8192

_Told = TypeVar("_Told")


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


def fault_reader(patterns: Mapping[str, Kind]) -> Callable[[str], Fault | None]:
    """Return what reads by regular expressions what is wrong; None if a text has none of them.

    The first one that the text has counts; its named groups say what is wrong.
    """
    compiled = [(re.compile(pattern), kind) for pattern, kind in patterns.items()]

    def read(text: str) -> Fault | None:
        for pattern, kind in compiled:
            if found := pattern.search(text):
                named: dict[str, Any] = found.groupdict()
                return Fault(kind, About(**named))
        return None

    return read

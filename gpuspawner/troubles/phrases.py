"""Finds out what a text is about by the phrases in it."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Generic, TypeVar

_LONGEST = 8192

_Kind = TypeVar("_Kind")


def beginning(text: str) -> str:
    """Return as much of a text as is read: an attempt to match may start at each character."""
    return text[:_LONGEST]


class Phrases(Generic[_Kind]):
    """Regular expressions by what they tell; upper and lower case are the same.

    The first kind with a phrase in the text counts.
    """

    def __init__(self, phrases: Mapping[_Kind, Iterable[str]]) -> None:
        self._phrases = [
            (re.compile("|".join(alternatives), re.IGNORECASE), kind)
            for kind, alternatives in phrases.items()
        ]
        # Each start reads all its texts again every second; a hostile one takes a tenth of that.
        self._known = lru_cache(maxsize=1024)(self._read)

    def kind(self, text: str) -> _Kind | None:
        """Return what a text is about; None if it has none of the phrases."""
        return self._known(text)

    def _read(self, text: str) -> _Kind | None:
        return next((kind for phrase, kind in self._phrases if phrase.search(text)), None)

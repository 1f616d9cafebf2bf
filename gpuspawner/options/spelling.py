"""Which values stand for a choice: asked of what was sent, and told by a JSON Schema, alike."""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol, TypeAlias

from gpuspawner.offers import Memory
from gpuspawner.offers.references import whole

Schema: TypeAlias = dict[str, object]
"""A JSON Schema, draft 2020-12, as plain data."""

_UNITS = {
    "": 1,
    **{f"{prefix}i": 1024**power for power, prefix in enumerate("KMGTPE", 1)},
    **{prefix: 1000**power for power, prefix in enumerate("kMGTPE", 1)},
}


class Spelling(Protocol):
    """How a choice can be written."""

    def stands_in(self, given: object) -> bool:
        """Whether a value is this choice; values of another type never are."""

    def schema(self) -> Schema:
        """What accepts exactly the values that are this choice."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number, whether or not it is written with a decimal point."""

    value: int | float

    def stands_in(self, given: object) -> bool:
        """Whether a value is the number; no truth value is."""
        is_number = isinstance(given, int | float) and not isinstance(given, bool)
        return is_number and given == self.value

    def schema(self) -> Schema:
        """The number alone."""
        return {"const": self.value}


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the administrator's, whatever its capitals, with `_` for `-` or the reverse."""

    key: str
    title: str

    def stands_in(self, given: object) -> bool:
        """Whether a value is the key as `gpuspawner.offers.entries.same_key` has it."""
        return isinstance(given, str) and _expression(self.key).search(given) is not None

    def schema(self) -> Schema:
        """A pattern, and the key as it is stored."""
        pattern = _expression(self.key).pattern
        return {
            "type": "string",
            "pattern": pattern,
            "title": self.title,
            "examples": [self.key],
        }


@dataclass(frozen=True, slots=True)
class Size:
    """A size of memory, as the administrator wrote it or as a whole number of any unit."""

    memory: Memory

    def stands_in(self, given: object) -> bool:
        """Whether a value is the same number of bytes, written in one of these ways."""
        return isinstance(given, str) and given in _texts(self.memory)

    def schema(self) -> Schema:
        """All the ways to write it, the administrator's first."""
        return {"enum": list(_texts(self.memory))}


@lru_cache(maxsize=1024)
def _expression(key: str) -> re.Pattern[str]:
    return re.compile(whole("".join(_any_of(character) for character in key)))


def _any_of(character: str) -> str:
    if character.isalpha():
        return f"[{character.upper()}{character.lower()}]"
    return "[_-]" if character in "_-" else re.escape(character)


@lru_cache(maxsize=1024)
def _texts(memory: Memory) -> tuple[str, ...]:
    amounts = ((Fraction(memory.bytes, size), unit) for unit, size in _UNITS.items())
    texts = (f"{amount}{unit}" for amount, unit in amounts if amount.denominator == 1)
    return tuple(dict.fromkeys((memory.text, *texts)))

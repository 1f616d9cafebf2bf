"""The values that stand for a choice, as a check and as a JSON Schema."""

import re
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import msgspec

from gpuspawner.offers.shapes import Memory
from gpuspawner.offers.texts import whole

Schema: TypeAlias = dict[str, object]
"""A JSON Schema, draft 2020-12, as plain data."""

_UNITS = {
    "": 1,
    **{f"{prefix}i": 1024**power for power, prefix in enumerate("KMGTPE", 1)},
    **{prefix: 1000**power for power, prefix in enumerate("kMGTPE", 1)},
}


class Number(msgspec.Struct, frozen=True):
    """A number, written with or without a decimal point."""

    value: int | float

    def stands_in(self, given: object) -> bool:
        """Whether a value is this number; a boolean never is."""
        return is_number(given) and given == self.value

    def schema(self) -> Schema:
        """Accept only this number."""
        return {"const": self.value}


class OfferKey(msgspec.Struct, frozen=True):
    """An administrator's key, in upper or lower case, with `_` for `-` or the reverse."""

    key: str
    title: str

    def stands_in(self, given: object) -> bool:
        """Whether a value is the same key for `gpuspawner.offers.shapes.same_key`."""
        return isinstance(given, str) and _expression(self.key).search(given) is not None

    def schema(self) -> Schema:
        """Return a pattern, with the stored key as an example."""
        pattern = _expression(self.key).pattern
        return {
            "type": "string",
            "pattern": pattern,
            "title": self.title,
            "examples": [self.key],
        }


class Size(msgspec.Struct, frozen=True):
    """A memory size, as the administrator wrote it or as a whole number of any unit."""

    memory: Memory

    def stands_in(self, given: object) -> bool:
        """Whether a value is the same number of bytes."""
        return isinstance(given, str) and given in _texts(self.memory)

    def schema(self) -> Schema:
        """List all ways to write it, the administrator's first."""
        return {"enum": list(_texts(self.memory))}


Spelling: TypeAlias = Number | OfferKey | Size
"""The ways to write a choice. A value of another type never stands for it."""


def is_number(value: object) -> bool:
    """Whether a JSON value is a number; to Python, booleans are numbers too."""
    return isinstance(value, int | float) and not isinstance(value, bool)


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

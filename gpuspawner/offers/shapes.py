"""Shapes of what an administrator writes, and the reading of a value as one.

A shape declares keys, types and ranges. Its `__post_init__` checks what cannot be declared, such as
a relation between two keys. Both are enforced by msgspec, whose errors are put in plain English.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from gpuspawner.offers.errors import OfferError
from gpuspawner.offers.frozen import NotPlainError, freeze
from gpuspawner.offers.texts import VISIBLE, WORDS
from gpuspawner.quoting import did_you_mean, one_line, quote

T = TypeVar("T")

MOST = 100_000
"""Of nothing that is counted here is there more: not of GPUs in a machine, not of machines."""

Count = Annotated[int, Meta(ge=1, le=MOST)]
Quantity: TypeAlias = str | int | float
Text = Annotated[str, Meta(pattern=VISIBLE)]
Some = Annotated[tuple[T, ...], Meta(min_length=1)]

_PLAIN_ENGLISH = {
    " | null": "",
    "`int | float | str`": "a quantity, such as 2, 500m or 16Gi",
    "`int | float`": "a number",
    "`int`": "a whole number",
    "`float`": "a number",
    "`str`": "text; write it in quotes",
    "`array`": "a list",
    "`object`": "a mapping",
    "`bool`": "true or false",
    ">=": "of at least",
    "<=": "of at most",
    ">": "more than",
    "<": "less than",
}
"""What msgspec calls the values that it expects, and what administrators call them."""


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping with these keys and no others. A key with null counts as left out."""


def read(value: object, kind: type[T], place: str) -> T:
    """Read plain data as a shape or another type.

    Raises:
        OfferError: The value, which stands at this place, is nothing of that type.
    """
    keys = getattr(kind, "__struct_encode_fields__", ())
    try:
        plain: Any = freeze(value)
        if keys and isinstance(plain, Mapping):
            plain = {k: part for k, part in plain.items() if part is not None or k not in keys}
        return msgspec.convert(plain, kind, strict=True)
    except NotPlainError as error:
        reason, path = error.args[0], one_line(error.args[1], longest=100)
    except RecursionError:
        reason, path = "is nested too deeply", ""
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        reason, path = _in_plain_english(error, plain, keys)
    raise OfferError(place + path, reason)


def each(values: Iterable[object], kind: type[T], place: str) -> tuple[T, ...]:
    """Read every item of a list that stands at this place."""
    return tuple(read(value, kind, f"{place}[{i}]") for i, value in enumerate(values))


def _in_plain_english(error: Exception, value: Any, keys: Iterable[str]) -> tuple[str, str]:
    """What is wrong with a value that msgspec does not convert, and where in it."""
    if isinstance(error.__cause__, OfferError):
        return error.__cause__.reason, error.__cause__.path
    if keys and isinstance(value, dict):
        for key in value:
            if key not in keys:
                hint = did_you_mean(key, keys) or f"; allowed are {', '.join(keys)}"
                return f"unknown key {quote(key)}{hint}", ""
    said, _, path = str(error).partition(" - at `$")
    path = path.removesuffix("`")
    if said.startswith("Object missing required field"):
        return f"{quote(said.split('`')[1])} is missing", ""
    if said.endswith("of length >= 1"):
        return "is empty; write at least one or leave it out", path
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        value = value[name] if name else value[int(index)]
    return f"{quote(value)} {_is_not(said.removeprefix('Expected '))}", path


def _is_not(expected: str) -> str:
    for pattern, words in WORDS.items():
        if expected == f"`str` matching regex {pattern!r}":
            return words
    expected = expected.partition(", got ")[0]
    for theirs, ours in _PLAIN_ENGLISH.items():
        expected = expected.replace(theirs, ours)
    return f"is not {expected}"

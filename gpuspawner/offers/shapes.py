"""Reads the administrator's values, and checks them against declared shapes.

A shape declares keys, types and ranges. Its `__post_init__` checks everything else, such as a
relation between two keys. msgspec enforces both; this module puts its errors in plain English.

Parts of an offer are Kubernetes objects of any depth. All spawns of the hub share them, so no code
may change them: `freeze` makes a read-only copy, and `thaw` makes a plain copy.
"""

import re
import string
from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from gpuspawner.kube.meta import Quantity
from gpuspawner.kube.quantity import INT64_MAX, parse_quantity
from gpuspawner.kube.quoting import did_you_mean, listing, one_line, quote
from gpuspawner.offers.texts import KEY, VISIBLE, WORDS

T = TypeVar("T")

MOST = 100_000
"""No machine has more GPUs, and no cluster has more machines."""

_LEAST_MEMORY = 2**20
"""Container runtimes start nothing with less; a smaller number lacks its unit."""

Count = Annotated[int, Meta(ge=1, le=MOST)]
Text = Annotated[str, Meta(pattern=VISIBLE)]
Some = Annotated[tuple[T, ...], Meta(min_length=1)]
_Key = Annotated[str, Meta(pattern=KEY)]
_SAME = str.maketrans(f"{string.ascii_uppercase}_", f"{string.ascii_lowercase}-")

JSON: TypeAlias = "str | int | float | bool | list[JSON] | dict[str, JSON] | None"
Frozen: TypeAlias = "str | int | float | bool | tuple[Frozen, ...] | Mapping[str, Frozen] | None"

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
"""msgspec's words for the values that it expects, and plain English for them."""


class NotPlainError(TypeError):
    """A part of a value isn't plain data; the arguments are the reason and the path."""


def freeze(value: object, path: str = "") -> Frozen:
    """Copy plain data, as from JSON or YAML, into data that can't change.

    Raises:
        NotPlainError: A part of it is neither text, number, boolean, null, list nor mapping with
            text keys. The path in the error begins with `path`.
        RecursionError: It is nested too deeply.
    """
    match value:
        case None | str() | int():
            return value
        case float():
            return float(value)  # msgspec accepts no subclass
        case list() | tuple():
            return tuple(freeze(part, f"{path}[{index}]") for index, part in enumerate(value))
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    reason = f"the key {quote(key)} is not text; write it in quotes"
                    raise NotPlainError(reason, path)
            # msgspec accepts no subclass of `str` as a key.
            return MappingProxyType(
                {str.__str__(key): freeze(part, f"{path}.{key}") for key, part in value.items()}
            )
        case _:
            reason = f"{quote(value)} is not plain data; write plain YAML or JSON values"
            raise NotPlainError(reason, path)


def thaw(value: Frozen) -> JSON:
    """Copy frozen data into new lists and dicts."""
    match value:
        case Mapping():
            return {key: thaw(part) for key, part in value.items()}
        case tuple():
            return [thaw(part) for part in value]
        case _:
            return value


class OfferError(ValueError):
    """The administrator's offers are invalid; the hub must not start with them.

    Attributes:
        trait: The trait of GPUSpawner, such as `accelerators`; empty if it isn't known yet.
        path: Where in its value, such as `['a100'].counts[1]`; empty for the whole value.
        reason: What is wrong and what is allowed.
    """

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"GPUSpawner.{place}: {reason}")
        self.trait = place.split("[", maxsplit=1)[0].split(".", maxsplit=1)[0]
        self.path = place.removeprefix(self.trait)
        self.reason = reason


class Memory(msgspec.Struct, frozen=True):
    """A memory size on offer.

    Attributes:
        text: As the administrator wrote it, such as `16Gi`; also its name in `user_options`.
        bytes: The same in bytes.
    """

    text: str
    bytes: int


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping with these keys and no others. A key with null counts as left out."""


def read(value: object, kind: type[T], place: str) -> T:
    """Read plain data as a shape or another type.

    Raises:
        OfferError: The value at this place isn't of that type.
    """
    keys = getattr(kind, "__struct_encode_fields__", ())
    try:
        plain: Any = freeze(value)
        if keys and isinstance(plain, Mapping):
            plain = {k: part for k, part in plain.items() if part is not None or k not in keys}
            plain = {key: _without_nulls(part) for key, part in plain.items()}
        return msgspec.convert(plain, kind, strict=True)
    except NotPlainError as error:
        reason, path = error.args[0], one_line(error.args[1], longest=100)
    except RecursionError:
        reason, path = "is nested too deeply", ""
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        reason, path = _in_plain_english(error, plain, keys)
    raise OfferError(place + path, reason)


def _without_nulls(value: Frozen) -> Frozen:
    """Leave out keys with null: a values file removes keys of another file in this way."""
    match value:
        case Mapping():
            kept = {key: _without_nulls(it) for key, it in value.items() if it is not None}
            return MappingProxyType(kept)
        case tuple():
            return tuple(map(_without_nulls, value))
        case _:
            return value


def each(values: Iterable[object], kind: type[T], place: str) -> tuple[T, ...]:
    """Read every item of the list at this place."""
    return tuple(read(value, kind, f"{place}[{i}]") for i, value in enumerate(values))


def same_key(key: str) -> str:
    """Return the same text for keys that people confuse: `a100-80` for `A100_80`.

    Letters beyond ASCII stay: the lower case of some is an ASCII letter.
    """
    return key.translate(_SAME)


def offered_key(name: str, offered: Collection[str], place: str, what: str = "") -> str:
    """Return the key of an accelerator as the offers write it, or as the hub would discover it.

    The name of a resource, which has a slash, stays. *what* is that of which it is a key, for the
    error.

    Raises:
        OfferError: It isn't offered.
    """
    by_same = {same_key(key): key for key in offered}
    if by_same and same_key(name) not in by_same:
        hint = did_you_mean(name, offered) or f"; there are {listing(offered)}"
        raise OfferError(place, f"there is no {what}{quote(name)}{hint}")
    return by_same.get(same_key(name), name if "/" in name else same_key(name))


def read_memory(written: Quantity, place: str) -> Memory:
    """Read a memory size, such as `16Gi`; a bare number is bytes."""
    kind = "a size of memory; write it as Kubernetes does, such as 512Mi or 16Gi"
    size = _positive(written, kind, place)
    if size.denominator != 1:
        raise OfferError(place, f"{quote(written)} is not a whole number of bytes")
    if size < _LEAST_MEMORY:
        raise OfferError(place, f"{quote(written)} is {size} bytes; write a unit, such as 8Gi")
    return Memory(str(written), int(size))


def read_millicores(written: Quantity, place: str) -> int:
    """Read an amount of CPU, such as `2`, `0.5` or `500m`, as millicores."""
    kind = "an amount of CPU; write it as Kubernetes does, such as 2 or 500m"
    amount = _positive(written, kind, place) * 1000
    if amount.denominator != 1:
        raise OfferError(place, f"{quote(written)} is finer than a thousandth of a core")
    return int(amount)


def read_memory_choices(value: object, place: str) -> tuple[Memory, ...]:
    """Read memory sizes; no two may be equal."""
    return _different(value, read_memory, lambda size: size.bytes, place)


def read_cpu_choices(value: object, place: str) -> tuple[int, ...]:
    """Read amounts of CPU as millicores; no two may be equal."""
    return _different(value, read_millicores, lambda amount: amount, place)


def _different(
    value: object, one: Callable[[Quantity, str], T], amount: Callable[[T], int], place: str
) -> tuple[T, ...]:
    found: dict[int, T] = {}
    for index, written in enumerate(read(value, tuple[Quantity, ...], place)):
        choice = one(written, f"{place}[{index}]")
        if amount(choice) in found:
            raise OfferError(f"{place}[{index}]", f"{quote(written)} is listed twice")
        found[amount(choice)] = choice
    return tuple(found.values())


def _positive(written: Quantity, kind: str, place: str) -> Fraction:
    try:
        amount = parse_quantity(str(written))
    except ValueError:  # a QuantityError, or `str` got thousands of digits
        raise OfferError(place, f"{quote(written)} is not {kind}") from None
    if amount <= 0:
        raise OfferError(place, f"{quote(written)} is not more than 0")
    if amount > INT64_MAX:
        raise OfferError(place, f"{quote(written)} is more than any machine has")
    return amount


def keyed(value: object, kind: type[T], trait: str) -> dict[str, T]:
    """Read a trait that maps keys to shapes."""
    if not isinstance(value, Mapping):
        raise OfferError(trait, f"{quote(value)} is not a mapping")
    found: dict[str, T] = {}
    spellings: dict[str, str] = {}
    for key, part in value.items():
        if part is None:
            continue
        if not isinstance(key, str):
            raise OfferError(trait, f"the key {quote(key)} is not text; write it in quotes")
        read(key, _Key, trait)
        other = spellings.setdefault(same_key(key), key)
        if other != key:
            reason = f"{quote(other)} and {quote(key)} are one key; rename one of them"
            raise OfferError(trait, reason)
        found[key] = read(part, kind, f"{trait}[{quote(key)}]")
    return found


def _in_plain_english(error: Exception, value: Any, keys: Iterable[str]) -> tuple[str, str]:
    """Return the problem with a value that msgspec refuses, and its path in the value."""
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

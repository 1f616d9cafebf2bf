"""Plain data made read-only, and copied back.

Parts of an offer are Kubernetes objects of any depth. They are shared by every spawn of the hub, so
nobody may change them: `freeze` turns them into read-only views, `thaw` into a fresh plain copy.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

JSON: TypeAlias = "str | int | float | bool | list[JSON] | dict[str, JSON] | None"
Frozen: TypeAlias = "str | int | float | bool | tuple[Frozen, ...] | Mapping[str, Frozen] | None"


def freeze(value: object) -> Frozen:
    """Copy plain data, as from JSON or YAML, into a form that cannot be changed.

    Raises:
        TypeError: Some part of it is neither text, number, boolean, null, list nor mapping with
            text keys.
    """
    match value:
        case None | str() | int() | float():
            return value
        case list() | tuple():
            return tuple(freeze(part) for part in value)
        case Mapping():
            if not all(isinstance(key, str) for key in value):
                raise TypeError("a key is not text")
            return MappingProxyType({key: freeze(part) for key, part in value.items()})
        case _:
            raise TypeError(f"a {type(value).__name__} is not plain data")


def thaw(value: Frozen) -> JSON:
    """Copy frozen data into lists and dicts of its own."""
    match value:
        case Mapping():
            return {key: thaw(part) for key, part in value.items()}
        case tuple():
            return [thaw(part) for part in value]
        case _:
            return value

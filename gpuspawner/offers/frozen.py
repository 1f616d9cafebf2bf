"""Plain data made read-only, and copied back.

Parts of an offer are Kubernetes objects of any depth. They are shared by every spawn of the hub, so
nobody may change them: `freeze` turns them into read-only views, `thaw` into a fresh plain copy.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from gpuspawner.quoting import quote

JSON: TypeAlias = "str | int | float | bool | list[JSON] | dict[str, JSON] | None"
Frozen: TypeAlias = "str | int | float | bool | tuple[Frozen, ...] | Mapping[str, Frozen] | None"


class NotPlainError(TypeError):
    """A part of a value is not plain data. Its arguments are why, and the way to the part."""


def freeze(value: object, path: str = "") -> Frozen:
    """Copy plain data, as from JSON or YAML, into a form that cannot be changed.

    Raises:
        NotPlainError: Some part of it is neither text, number, boolean, null, list nor mapping with
            text keys. The way to it begins with *path*.
        RecursionError: It is nested too deeply.
    """
    match value:
        case None | str() | int():
            return value
        case float():
            return float(value)  # msgspec takes no other class for a number
        case list() | tuple():
            return tuple(freeze(part, f"{path}[{index}]") for index, part in enumerate(value))
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    reason = f"the key {quote(key)} is not text; write it in quotes"
                    raise NotPlainError(reason, path)
            # msgspec takes no other class than `str` for a key.
            return MappingProxyType(
                {str.__str__(key): freeze(part, f"{path}.{key}") for key, part in value.items()}
            )
        case _:
            reason = f"{quote(value)} is not plain data; write plain YAML or JSON values"
            raise NotPlainError(reason, path)


def thaw(value: Frozen) -> JSON:
    """Copy frozen data into lists and dicts of its own."""
    match value:
        case Mapping():
            return {key: thaw(part) for key, part in value.items()}
        case tuple():
            return [thaw(part) for part in value]
        case _:
            return value

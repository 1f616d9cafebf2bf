"""Trait types for which null means absent, as in a file of values."""

from typing import Any

import traitlets
from traitlets import TraitType


class _NullIsAbsent(TraitType[Any, Any]):
    """A trait that null, as in a file of values, leaves at its default."""

    def validate(self, obj: Any, value: Any) -> Any:
        absent = value is None and not self.allow_none
        value = self.default(obj) if absent else value
        return super().validate(obj, value)  # type: ignore[misc]


# The reference documentation shows these names.
class Bool(_NullIsAbsent, traitlets.Bool):  # type: ignore[type-arg]
    """A boolean."""


class Dict(_NullIsAbsent, traitlets.Dict):
    """A dictionary."""


class Enum(_NullIsAbsent, traitlets.Enum):  # type: ignore[type-arg]
    """One of several values."""


class Float(_NullIsAbsent, traitlets.Float):  # type: ignore[type-arg]
    """A number."""


class List(_NullIsAbsent, traitlets.List):  # type: ignore[type-arg]
    """A list."""


class Unicode(_NullIsAbsent, traitlets.Unicode):  # type: ignore[type-arg]
    """A text."""

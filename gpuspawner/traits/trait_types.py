"""Trait types for a spawner that administrators' code may have written before it used ours.

Null means absent, as in a file of values. And a spawner takes any value: where our trait can't have
it, it is an attribute of the administrator's that has the same name, and ours stays as it was.
"""

import logging
from functools import cache
from typing import Any

import traitlets
from traitlets import TraitError, TraitType

_log = logging.getLogger(__name__)


def setting(spawner: Any, name: str) -> Any:
    """Return what a trait of ours says, also if its name is that of somebody else's attribute."""
    kept = getattr(spawner, "gpuspawner_kept", {})
    return kept[name] if name in kept else getattr(spawner, name)


class AsSet:
    """The attributes of a spawner, its traits as `setting` reads them."""

    def __init__(self, spawner: Any) -> None:
        self._spawner = spawner

    def __getattr__(self, name: str) -> Any:
        return setting(self._spawner, name)


class _Tolerant(TraitType[Any, Any]):
    """A trait that null leaves at its default, and that a spawner's other values don't change."""

    def validate(self, obj: Any, value: Any) -> Any:
        absent = value is None and not self.allow_none
        value = self.default(obj) if absent else value
        kept = getattr(obj, "gpuspawner_kept", None)  # only a spawner has it, no configuration
        others = {name: it for name, it in (kept or {}).items() if name != self.name}
        try:
            value = super().validate(obj, value)  # type: ignore[misc]
        except (TraitError, TypeError, ValueError):  # or it can't even be compared
            if kept is None or not self.name:  # within a Union or a List, a trait has no name
                raise
            _tell(self.name)
            others[self.name] = setting(obj, self.name)
        if others or kept:
            obj.gpuspawner_kept = others
        return value


@cache
def _tell(name: str) -> None:
    """Log this once for each name, and not at each start."""
    _log.warning(
        "Something set a spawner's attribute %s to a value that GPUSpawner.%s can't have, so the "
        "trait stays as it is. Rename the attribute if it is your own.",
        name,
        name,
    )


# The reference documentation shows these names.
class Bool(_Tolerant, traitlets.Bool):  # type: ignore[type-arg]
    """A boolean."""


class Dict(_Tolerant, traitlets.Dict):
    """A dictionary."""


class Enum(_Tolerant, traitlets.Enum):  # type: ignore[type-arg]
    """One of several values."""

    def validate(self, obj: Any, value: Any) -> Any:
        """Take false for ``off``, if that is one of them: so YAML 1.1 reads it, and Helm does."""
        is_off = value is False and "off" in (self.values or ())
        return super().validate(obj, "off" if is_off else value)


class Float(_Tolerant, traitlets.Float):  # type: ignore[type-arg]
    """A number."""


class List(_Tolerant, traitlets.List):  # type: ignore[type-arg]
    """A list."""


class Unicode(_Tolerant, traitlets.Unicode):  # type: ignore[type-arg]
    """A text."""


class Union(_Tolerant, traitlets.Union):
    """A value of one of several types."""

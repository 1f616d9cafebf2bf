"""Copies of spawners, whose traits can change without changing those of the original."""

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gpuspawner.compat.class_traits import plain_values

AnySpawner = TypeVar("AnySpawner")

# The hub's whole configuration, and the profiles, which KubeSpawner copies before it changes them.
_NEVER_CHANGED = frozenset({"config", "profile_list"})


def copy_of(spawner: AnySpawner) -> AnySpawner:
    """A copy of *spawner* whose traits can be changed without changing those of the original."""
    copied: Any = copy.copy(spawner)
    copied._trait_values = _own(copied._trait_values)
    vars(copied).update(_own(plain_values(copied)))
    made: AnySpawner = copied
    return made


def renewing(copied: AnySpawner) -> Callable[[], AnySpawner]:
    """Return a function that makes a copy as it is now again; much cheaper than another copy."""
    spawner: Any = copied
    attributes, values = dict(vars(spawner)), _own(spawner._trait_values)
    plain = _own(plain_values(spawner))

    def renew() -> AnySpawner:
        vars(spawner).clear()
        vars(spawner).update(attributes, _trait_values=_own(values), **_own(plain))
        return copied

    return renew


def _own(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a spawner's traits that shares no value that is ever changed."""
    return {
        name: _copied(value)
        if isinstance(value, dict | list | set) and name not in _NEVER_CHANGED
        else value
        for name, value in values.items()
    }


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001, an administrator's object that nothing can copy is shared
        return value

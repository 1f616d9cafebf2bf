"""The administrator's list of profiles, read once as long as it stays equal."""

import copy
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gpuspawner.compat import kubespawner
from gpuspawner.profiles.override_mistakes import OVERRIDE, parts
from gpuspawner.profiles.profile_list import Complete, Profile, read

_MOST_KEPT = 16
"""Lists; a function may return another one for each group of users."""


class Listed(msgspec.Struct, frozen=True, eq=False):
    """The profiles at one moment, as KubeSpawner uses them and as gpuspawner does.

    Attributes:
        has_functions: Whether overrides are computed when a profile is loaded.
    """

    complete: Complete
    profiles: tuple[Profile, ...]
    has_functions: bool
    has_names: bool

    def hides_names(self, spawner: object) -> bool:
        """Whether names in a spawner's settings may be missing in its default profile's pod."""
        default = [it for it in self.complete if it.get("default")]
        replaced = {name for _, it in parts(default) for name in it.get(OVERRIDE) or ()}
        return any(_any_part(_has_brace, getattr(spawner, name, None)) for name in replaced)


class Lists:
    """The last lists; equal ones give the same `Listed`."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Any, Listed]] = deque(maxlen=_MOST_KEPT)

    def read(self, spawner: object, given: Any) -> Listed:
        """Read a list.

        Raises:
            Exception: It isn't as KubeSpawner documents it.
        """
        for kept, listed in self._kept:
            if kept == given and _orders(kept) == _orders(given):
                return listed
        complete = kubespawner.complete_profiles(spawner, given)
        overrides = (part.get(OVERRIDE) for _, part in parts(complete))
        has_names = any(_any_part(_has_brace, it) for it in overrides)
        listed = Listed(complete, read(complete), _any_part(callable, complete), has_names)
        self._kept.append((copy.deepcopy(given), listed))
        return listed


def _orders(given: Any) -> list[list[tuple[str, list[str]]]]:
    """Return the orders of options and choices: KubeSpawner's default is the first choice."""
    options = (list((it.get("profile_options") or {}).items()) for it in given or ())
    return [[(name, list(it.get("choices") or ())) for name, it in its] for its in options]


def _any_part(holds: Callable[[object], bool], value: object) -> bool:
    """Whether this holds for any value in mappings and lists, however deep."""
    if isinstance(value, Mapping):
        return any(_any_part(holds, it) for it in value.values())
    if isinstance(value, list | tuple):
        return any(_any_part(holds, it) for it in value)
    return holds(value)


def _has_brace(value: object) -> bool:
    return isinstance(value, str) and "{" in value

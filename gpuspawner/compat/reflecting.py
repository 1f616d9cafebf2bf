"""KubeSpawner's reflectors, which forget an object as soon as it is gone.

Read in ``kubespawner/reflector.py`` of 7.0.0 and 7.1.0: a list replaces ``resources`` as a whole,
and the watch changes it item by item.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kubespawner.reflector import ResourceReflector
from traitlets import Bunch, validate

OnGone = Callable[[object], None]


class TellingResources(dict[str, Any]):
    """Resources that tell the last version of each one that is gone."""

    def __init__(self, resources: Mapping[str, Any], gone: OnGone) -> None:
        super().__init__(resources)
        self._gone = gone

    def pop(self, key: str, *default: Any) -> Any:
        """Remove a resource, as the watch does."""
        if key in self:
            self._gone(self[key])
        return super().pop(key, *default)

    def __setitem__(self, key: str, resource: Any) -> None:
        """Store the newest version of a resource, or another one of its name."""
        self._tell_if_other(key, resource)
        super().__setitem__(key, resource)

    def listed(self, resources: Mapping[str, Any]) -> "TellingResources":
        """Return what a new list has; the watch may have missed the end of what it lacks."""
        for key, last in self.items():
            if key in resources:
                self._tell_if_other(key, resources[key])
            else:
                self._gone(last)
        return TellingResources(resources, self._gone)

    def _tell_if_other(self, key: str, resource: Any) -> None:
        if key in self and _uid(self[key]) != _uid(resource):
            self._gone(self[key])


def _uid(resource: Any) -> object:
    return resource["metadata"].get("uid")


def telling(reflector: Any, gone: OnGone) -> Any:
    """Return a class of reflectors that call *gone* with the last version of what is gone."""
    if not (isinstance(reflector, type) and issubclass(reflector, ResourceReflector)):
        return reflector

    class TellingReflector(reflector):  # type: ignore[misc]
        @validate("resources")
        def _keep_telling(self, proposal: Bunch) -> TellingResources:
            before = self.resources
            telling = before if isinstance(before, TellingResources) else TellingResources({}, gone)
            return telling.listed(proposal.value)

    return TellingReflector

"""KubeSpawner's reflectors, which forget an object as soon as it is gone, and give up.

Read in ``kubespawner/reflector.py`` of 7.0.0 and 7.1.0: a list replaces ``resources`` as a whole,
and the watch changes it item by item. Without an API server, it ends for good after 51 s.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from kubernetes_asyncio.client import ApiException
from kubespawner.reflector import ResourceReflector
from traitlets import Bunch, validate

OnGone = Callable[[object], None]

_PAUSE_SECONDS = 30.0
"""The time between two lists of a reflector that has given up; KubeSpawner's is up to 26 s."""
_LONGEST_PAUSE_SECONDS = 600.0
"""The time between two lists while the hub isn't allowed to list: that may last."""
_DENIED = (401, 403, 404)


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


def works(reflector: Any) -> bool:
    """Whether KubeSpawner will not replace a reflector: it has listed, or is about to."""
    if reflector is None:
        return False
    first: asyncio.Future[object] = reflector.first_load_future
    return not first.done() or (not first.cancelled() and first.exception() is None)


def lasting(reflector: Any) -> Any:
    """Return a class of reflectors that go on once the API server is back, whenever that is.

    KubeSpawner replaces one that has given up only after a start's time-out, and our limits end a
    start before that. So each start would fail until the hub restarts.
    """
    if not _is_reflector(reflector):
        return reflector

    class LastingReflector(reflector):  # type: ignore[misc]
        async def _watch_and_update(self) -> None:
            try:
                while not self._stopping:
                    await super()._watch_and_update()
                    await _until_it_lists(self)
            except asyncio.CancelledError:
                if not self._stopping:  # KubeSpawner's `stop` waits for a task that returns
                    raise

    return LastingReflector


async def _until_it_lists(reflector: Any) -> None:
    pause = _PAUSE_SECONDS
    while not reflector._stopping:
        await asyncio.sleep(pause)
        try:
            await reflector._list_and_update()
        except ApiException as error:  # which KubeSpawner logs each time
            if error.status in _DENIED:
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        except Exception:  # noqa: BLE001, S112, KubeSpawner has logged why it gave up
            continue
        else:
            return


def telling(reflector: Any, gone: OnGone) -> Any:
    """Return a class that is `lasting`, and calls *gone* with the last version of what is gone."""
    if not _is_reflector(reflector):
        return reflector

    class TellingReflector(lasting(reflector)):  # type: ignore[misc]
        @validate("resources")
        def _keep_telling(self, proposal: Bunch) -> TellingResources:
            before = self.resources
            telling = before if isinstance(before, TellingResources) else TellingResources({}, gone)
            return telling.listed(proposal.value)

    return TellingReflector


def _is_reflector(reflector: Any) -> bool:
    return isinstance(reflector, type) and issubclass(reflector, ResourceReflector)

"""Share the availability of a list's profiles among the owners whose pods are alike.

A page with a hundred choices takes milliseconds. As long as nothing changes that its states depend
on, the next page needs only to know that its owner's pods would be the same but for names.
"""

from collections.abc import Hashable

from gpuspawner.cluster.health import Live
from gpuspawner.compat.kubespawner import makes_its_pods
from gpuspawner.compat.likeness import likeness
from gpuspawner.kube.caches import UntilChanged
from gpuspawner.profiles.profile_availability import ProfileAvailability
from gpuspawner.profiles.profile_list import Listed
from gpuspawner.runtime import Runtime
from gpuspawner.start import hooks
from gpuspawner.start.host import Host
from gpuspawner.start.kueue_queue import queue_for
from gpuspawner.start.policing import Entitlement

Rows = tuple[ProfileAvailability, ...]

_MOST_KEPT = 256
"""Owners who differ, and lists."""


class SharedRows:
    """The availability of lists, each for all owners whose pods are alike. One for the hub."""

    def __init__(self) -> None:
        self._kept = UntilChanged[Rows](_MOST_KEPT)

    def find(self, page: "Page", version: object) -> Rows | None:
        """Return what another page of this version has found out; None for nothing."""
        if not page.is_general():
            return None
        return self._kept.find(version, page.alone, page.shared)

    def keep(self, page: "Page", key: Hashable, version: object, rows: Rows) -> None:
        """Keep what a page has found out, if nothing has changed since it began.

        *key* is one of the page's, *version* that of its beginning.
        """
        if page.is_general() and page.version() == version:
            self._kept.keep(version, key, rows)


class Page:
    """One server's page of profiles.

    Attributes:
        alone: The key of its states if they hold for no other server.
        shared: Their key for all servers whose pods are alike.
    """

    def __init__(
        self, spawner: Host, listed: Listed, runtime: Runtime, entitlement: Entitlement
    ) -> None:
        self._runtime = runtime
        started = hooks.as_started(spawner)
        self._key = started.namespace, started.pod_name
        self._has_policies = entitlement.is_limited
        is_alone = listed.has_functions or not makes_its_pods(spawner)
        found = None if is_alone else likeness(started)
        queue = queue_for(started, runtime.view.queues)
        owner = hooks.later(spawner, runtime.preflight.learned.placements).owner
        self._is_known = found is not None and not queue and not owner
        self.alone = (listed, found.alone) if found else None
        common = found and (found.alone if listed.has_names else found.but_for_names)
        self.shared = (listed, common) if found else None

    def version(self) -> object:
        """Return the version of everything that isn't in the keys."""
        return self._runtime.surveys.version, self._runtime.preflight.learned.version

    def is_general(self) -> bool:
        """Whether the states hold for others at this moment.

        They don't for somebody with policies, with an older pod or a reservation, or in a queue of
        Kueue; nor as long as somebody waits in line.
        """
        runtime, preflight = self._runtime, self._runtime.preflight
        state, name = runtime.view.state, "/".join(self._key)
        return (
            self._is_known
            and not self._has_policies
            and isinstance(runtime.view.health(), Live)
            and preflight.line.is_empty
            and name not in state.pods
            and name not in state.unbound_pods
            and preflight.reservations.find(self._key) is None
        )

"""Places in line that survive a restart of the hub."""

import time
from collections.abc import Collection, Mapping
from math import inf

from gpuspawner.reservations.place_in_line import KeptPlace

PATIENCE_SECONDS = 60.0
"""How long a hub that has just started waits for those who were in line."""


Server = object
"""A server's identity, as `gpuspawner.compat.jupyterhub.identity`.

Its owner may be renamed, and a deleted server's names may be those of another by now.
"""


class StoredPlaces:
    """The places of those who haven't come back yet since the hub started.

    Nobody behind them is served before they have, but they have a minute at most.
    """

    def __init__(self) -> None:
        self._places: dict[Server, KeptPlace] = {}
        self._of_earlier_hub: set[Server] = set()
        self._came: set[Server] | None = set()  # only until the stored places have been read
        self._until = time.monotonic() + PATIENCE_SECONDS

    def begin(self) -> None:
        """Begin to count the minute: only now does the hub take requests."""
        self._until = time.monotonic() + PATIENCE_SECONDS

    def keep(self, server: Server, place: KeptPlace) -> None:
        """Keep a place."""
        self._places[server] = place

    def keep_stored(self, stored: Mapping[Server, KeptPlace]) -> None:
        """Keep the places that the hub had stored when it ended.

        Servers that have come since then are left out. What is stored for them is from this hub,
        and stays for a second if somebody stops them while they wait. Those that the hub still
        checks have their places already.
        """
        came, self._came = self._came or set(), None
        self._places |= {it: stored[it] for it in stored if it not in came}
        self._of_earlier_hub = self._places.keys() - came

    def is_of_earlier_hub(self, server: Server) -> bool:
        """Whether the place of a server is kept since before the hub started."""
        return server in self._of_earlier_hub

    def find(self, server: Server) -> KeptPlace | None:
        """Return the place that is kept for a server; None if there is none."""
        return self._places.get(server)

    def pop(self, server: Server) -> KeptPlace | None:
        """Return the place of a server that waits again, or doesn't any more; it has none then."""
        if self._came is not None:
            self._came.add(server)
        self._of_earlier_hub.discard(server)
        return self._places.pop(server, None)

    def servers(self) -> tuple[Server, ...]:
        """Return the servers whose places are kept, in their order."""
        return tuple(sorted(self._places, key=lambda it: self._places[it].since))

    def before(self, since: float) -> int:
        """Return how many awaited places are ahead of one; nobody knows what they wait for."""
        return sum(1 for it in self._awaited if it.since < since)

    @property
    def are_awaited(self) -> bool:
        """Whether others have to wait for those who haven't come back."""
        return bool(self._awaited)

    @property
    def first(self) -> float:
        """When the first of those joined who are awaited; infinity if nobody is."""
        return min((it.since for it in self._awaited), default=inf)

    @property
    def _awaited(self) -> Collection[KeptPlace]:
        return self._places.values() if time.monotonic() < self._until else ()

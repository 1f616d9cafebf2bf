"""The line of one hub: its rules, those who wait, and what is known of servers in time."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from gpuspawner.cluster.view import ClusterView
from gpuspawner.compat.jupyterhub import unused_for
from gpuspawner.kube.meta import Key
from gpuspawner.kube.servers import ServerPod
from gpuspawner.launch.progress import Progress
from gpuspawner.launch.server_state import ServerState
from gpuspawner.line.in_line import InLine
from gpuspawner.line.queue_config import QueueRules
from gpuspawner.line.resuming import resume_all
from gpuspawner.line.stored_places import StoredPlaces
from gpuspawner.line.waiting_line import WaitingLine
from gpuspawner.preflight.nobody_waits import DecidesAlone
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling.verdicts import Verdicts
from gpuspawner.start.host import Host
from gpuspawner.start.policing import Policing


class HubLine:
    """What a hub with a line has once.

    Args:
        pods: Returns the pods of servers, by namespace and name.

    Attributes:
        rules: Who may wait.
        stored_places: The places of those who haven't come back yet since the hub started.
        unused_for: Returns the pods of servers that nobody has used for so many seconds.
    """

    def __init__(self, rules: QueueRules, pods: Callable[[], Mapping[Key, ServerPod]]) -> None:
        self.rules = rules
        self.stored_places = StoredPlaces()
        self.unused_for = unused_for
        self._pods = pods
        self._waiting: WaitingLine | None = None

    def make_line(
        self,
        view: ClusterView,
        verdicts: Verdicts,
        reservations: Reservations,
        decide: DecidesAlone,
    ) -> WaitingLine:
        """Make the line for the preflight; see `gpuspawner.preflight.nobody_waits.MakesLine`."""
        self._waiting = WaitingLine(
            view,
            verdicts,
            reservations,
            decide,
            self.stored_places,
            self.rules.part_kept_free,
            self._pods,
            lambda: self.unused_for(60 * self.rules.minutes_idle),
        )
        return self._waiting

    @property
    def turn(
        self,
    ) -> Callable[[Host, Runtime, Policing, ServerState, Progress, asyncio.Event], InLine]:
        """Makes the wait of one start of a spawner."""
        if self._waiting is None:
            raise RuntimeError("the preflight has not made the line yet")
        return partial(InLine, self.rules, self.stored_places, self._waiting)

    def has_place_for(self, user_id: int) -> bool:
        """Whether one more server of a user may wait."""
        waiting, rules = self._waiting, self.rules
        return waiting is None or (
            waiting.places_of(user_id) < rules.places_per_user and len(waiting) < rules.places
        )

    def resume(self, view: ClusterView) -> Coroutine[Any, Any, None]:
        """Start the servers again that were in line when the hub ended. Never raises."""
        return resume_all(self.stored_places, view)

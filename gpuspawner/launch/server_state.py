"""How one spawner's last server has ended, and how far the next one has come, for its pages.

The hub's database keeps both, in the state that the hub stores for each server. So they survive the
hub, need no room in memory, and go when the server's row goes. If a restarted hub finds a start
that has begun, its restart has cut it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from gpuspawner.cluster.health import Live
from gpuspawner.compat import jupyterhub
from gpuspawner.kube.meta import moment
from gpuspawner.kube.startup import StartingPod, read_pod
from gpuspawner.reservations import granted
from gpuspawner.reservations.granted import Granted
from gpuspawner.reservations.place_in_line import KeptPlace
from gpuspawner.runtime import Runtime
from gpuspawner.scheduling.state import ENDED
from gpuspawner.start.host import Host, log_name
from gpuspawner.troubles.ending import (
    Ending,
    ending_of,
    is_lost,
    is_overdue,
    read,
    utc_now,
    written,
)
from gpuspawner.troubles.facts import Happened
from gpuspawner.troubles.trouble import Kind

_STATE = "gpuspawner"
"""The key of our part of a server's state."""
PLACE = "place"
"""The key of a place in line, in our part."""
_BEGAN = "began"
"""The key of when a start began."""


class ServerState:
    """What the hub stores of one spawner's servers: a start that has begun, its grant, its end.

    Attributes:
        granted: What the server's owner got.
    """

    def __init__(self, spawner: Host, runtime: Runtime) -> None:
        self._spawner = spawner
        self._stock = spawner.gpuspawner_stock
        self._runtime = runtime
        self._last: Ending | None = None
        self._began: datetime | None = None
        self._place: KeptPlace | None = None
        self.granted = Granted()
        self._is_up = False

    # What the hub stores

    def stored(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a server's state with our part."""
        ours: dict[str, object] = {}
        if self._last is not None:
            ours["ending"] = written(self._last)
        if self._began is not None:
            ours[_BEGAN] = self._began.isoformat()
        if self._place is not None:
            ours[PLACE] = self._place.written()
        if self.granted != Granted():
            ours[granted.STORED] = self.granted.written()
        return {**state, _STATE: ours} if ours else dict(state)

    def load(self, state: Mapping[str, Any]) -> None:
        """Read what was stored; this is all that a restarted hub knows."""
        ours = _ours(state)
        self._last, self.granted = read(ours.get("ending")), granted.stored(ours)
        runs = jupyterhub.has_server(self._spawner)
        found, waited = ours.get(_BEGAN), KeptPlace.read(ours.get(PLACE))
        began = found if isinstance(found, str) else None
        # If there is no line any more, nobody else may have to wait for who was in it.
        line = self._runtime.line
        place = waited if line is not None else None
        # The hub stores that there is a server before it stores that its start has begun.
        has_begun = jupyterhub.has_begun(self._spawner)
        was_starting = began is not None or waited is not None or not has_begun
        goes_on = place is not None and began is None
        if runs and was_starting and not goes_on:
            at = moment(began) if began is not None and has_begun else None
            self._last = Ending(Kind.HUB_RESTARTED, at or utc_now())
        if line is not None and place is not None:
            # Also if the last hub has stopped it, and not yet begun it anew.
            self._place = place
            line.stored_places.keep(self.server, place)
        self._is_up = runs and not was_starting

    # What becomes of a server

    def forget(self) -> None:
        """Forget how the last server ended: a new one is allowed to start."""
        self._last = None

    def wait(self, place: KeptPlace) -> None:
        """Note that a start waits in line; its place is stored until the server is up."""
        self._place, self._began = place, None  # a restarted hub goes on with it
        jupyterhub.store_state(self._spawner)

    def wait_no_longer(self) -> None:
        """Note that no later hub may go on with a start, for it has failed or its owner has left.

        The hub stores that at the end of its stop, and may be ended before.
        """
        if self._place is not None:
            self._place, self._began = None, utc_now()
            jupyterhub.store_state(self._spawner)

    def cancelled(self) -> None:
        """Note that a start was cancelled: somebody has stopped it, unless the hub ends."""
        if not self._runtime.is_ending:
            self.wait_no_longer()

    def begin(self) -> None:
        """Note a start that begins; the hub commits this at once, with the time of the start.

        A server that has a place in line goes on after a restart, until it sends its pod. Of
        KubeSpawner's part, what is stored stays: by an old one, KubeSpawner still has to look for
        the claim of an old home directory.
        """
        if self._place is None and jupyterhub.begins_start(self._spawner):
            self._began = utc_now()
            kept = jupyterhub.stored_state(self._spawner)
            if not isinstance(kept, Mapping) or not kept:
                kept = self._spawner.get_state()
            jupyterhub.note_state(self._spawner, self.stored(kept))

    async def send(self, given: Granted) -> None:
        """Note that a start is about to send its pod, the pod's name, and what was granted.

        Usually, all of it is stored since it began, and a commit takes longer than a verdict. But a
        hook or a profile may have changed the names since, and policies may grant something else.
        """
        self.granted = given
        self._began = self._began or utc_now()
        await jupyterhub.until_state_is_stored(self._spawner)

    @property
    def why(self) -> str:
        """Why the server has ended, as a slug: the hub has stopped it, or it never came up."""
        if self._last is not None:
            return self._last.kind.value
        return "stopped" if self._is_up else "not-started"

    def answers(self) -> None:
        """Note that the hub takes the server as up: after its start, or after the hub's own."""
        self._runtime.note(Happened.STARTED, self._spawner)
        was_noted = self._place is not None or self._last is not None
        self._last, self._began, self._is_up = None, None, True
        self._place = None
        self._know(self._stock.known_pod())
        if self._runtime.line is not None:
            self._runtime.line.stored_places.pop(self.server)
        self._runtime.farewells.forget(self._key)
        if was_noted:
            jupyterhub.store_state(self._spawner)

    def stopped_by_another(self) -> None:
        """Note that somebody else than its owner is about to stop the server."""
        self._last = self._last or Ending(Kind.STOPPED, utc_now())

    def clear(self) -> None:
        """Note that the server has stopped, or that a start is about to begin."""
        self._began, self._is_up = None, False
        # A server whose place is kept joins the line again, even if the hub had stopped it before
        # its second restart.
        line = self._runtime.line
        self._place = line.stored_places.find(self.server) if line is not None else None

    def farewell(self, pod: object) -> None:
        """Note the last of any server's pod that is gone: all spawners share one reflector."""
        try:
            self._runtime.farewells.note(pod)
        except Exception:  # KubeSpawner's reflector must go on
            self._spawner.log.exception("Can't note how a pod ended")

    def polled(self, status: int | None, before: object) -> int | None:
        """As `_polled`, or KubeSpawner's status if that fails: the hub drops what it can't poll."""
        try:
            self._know(before)
            status = self._polled(status, before)
        except Exception:
            self._spawner.log.exception("Can't tell how %s ended", log_name(self._spawner))
        if status is not None:
            self.store()
        return status

    def store(self) -> None:
        """Store how the server has ended before the hub stores that it has stopped.

        The hub stores the state some commits later. If it ended in between, nobody else would know.
        """
        if self._last is not None:
            jupyterhub.store_state(self._spawner)

    def _know(self, pod: object) -> None:
        """Note the uid of the server's pod: by that it counts if the hub forgets the server."""
        known = read_pod(pod)
        accounts, spawner = self._runtime.accounts, self._spawner
        if known is not None and accounts is not None:
            self.granted = replace(self.granted, pod=known.metadata.uid)
            # Before the server is up, it may be anybody's with that name. One that has ended counts
            # no more, and the watch that counts doesn't tell when it is gone.
            if self._is_up and known.status.phase not in ENDED:
                accounts.know(self._key, spawner.user.id, spawner.name, self.granted)

    def _polled(self, status: int | None, before: object) -> int | None:
        """Note why a server has ended, if it has; return what the hub shall think of it.

        Args:
            status: KubeSpawner's; it takes a server as running for as long as its pod is there.
            before: The pod before KubeSpawner was asked, because it deletes a pod that has ended.
        """
        if not self._is_up or self._spawner.api is None:
            return status
        # It may end while KubeSpawner is about to look; then only a later version of it tells.
        both = read_pod(before), read_pod(self._stock.known_pod())
        pods = [it for it in both if it is not None]
        if status is None:
            if not pods or not is_overdue(pods[0], utc_now()):
                return None
            status = 1
        if self._last is None:
            self._last = self._ending(pods)
            self._spawner.log.info(
                "%s's server has ended: %s", log_name(self._spawner), self._last.kind
            )
        return status

    def _ending(self, pods: Iterable[StartingPod]) -> Ending:
        now = utc_now()
        told = (ending_of(it, now) for it in pods)
        found = next(filter(None, told), None) or self._runtime.farewells.of(self._key)
        if found is None:
            return Ending(Kind.DELETED, now)
        if found.kind is Kind.TAINTED and self._has_lost(found.node):
            return replace(found, kind=Kind.NODE_LOST)
        return found

    def _has_lost(self, node: str) -> bool:
        """Whether a node doesn't answer, or is gone; a hub that sees no nodes doesn't know."""
        view = self._runtime.view
        known = view.state.nodes.get(node)
        return is_lost(known) and (known is not None or isinstance(view.health(), Live))

    @property
    def server(self) -> object:
        """As `gpuspawner.line.stored_places.Server`."""
        return jupyterhub.identity(self._spawner)

    @property
    def _key(self) -> tuple[str, str]:
        return self._spawner.namespace, self._spawner.pod_name


def place_of(state: object) -> KeptPlace | None:
    """Return the place in line of a server whose state the hub has stored; None if it has none."""
    return KeptPlace.read(_ours(state).get(PLACE))


def without_place(state: object) -> object:
    """Return a state that the hub has stored without the server's place in line."""
    if not isinstance(state, Mapping):
        return state
    ours = {name: it for name, it in _ours(state).items() if name != PLACE}
    return {**state, _STATE: ours}


def without_ours(state: object) -> Any:
    """Return a state that the hub has stored without our part."""
    if not isinstance(state, Mapping):
        return state
    return {name: it for name, it in state.items() if name != _STATE}


def last_of(state: object) -> Ending | None:
    """Return how a server ended, from the state that the hub has stored; None if unknown."""
    return read(_ours(state).get("ending"))


def _ours(state: object) -> Mapping[str, Any]:
    ours = state.get(_STATE) if isinstance(state, Mapping) else None
    return ours if isinstance(ours, Mapping) else {}

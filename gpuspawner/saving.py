"""The options that the hub has stored for a server, for a start that says nothing of its own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from jupyterhub import orm
from sqlalchemy import event
from sqlalchemy.orm import object_session

from gpuspawner import gates, options, sent
from gpuspawner.hub import Refusal
from gpuspawner.offers import Offers
from gpuspawner.options import Gone
from gpuspawner.pods import Plain


@event.listens_for(orm.Spawner.user_options, "set", retval=True)
def _store_what_can_be_stored(stored_for: orm.Spawner, value: object, *_: object) -> object:
    """Let what is stored stand where JupyterHub is about to store more than it can write."""
    return value if sent.is_within_bounds(value) else stored_for.user_options


class SavesOptions:
    """A mixin before KubeSpawner in a class's bases.

    JupyterHub stores what is sent before anybody has judged it, and takes it for what the next
    start asks that says nothing. So what was granted is stored in its place, and what was not is
    taken back. What an administrator or a program stores by PUT or PATCH, without a start, stands.

    Attributes:
        brings_options: Whether this start says what it asks for, so that the hub has stored it.
        gone: Of the stored options of this start, those that are not on offer any more.
    """

    brings_options = True

    gone: tuple[Gone, ...] = ()
    _granted: Mapping[str, object] | None = None

    def saved(self, offers: Offers) -> tuple[gates.Options, tuple[Gone, ...]]:
        """What is stored, as far as it is on offer, with defaults for what is not; and the rest."""
        spawner: Any = self
        ours, theirs = gates.split(spawner, spawner.user_options)
        kept, gone = options.fall_back(ours, offers)
        return {**theirs, **options.user_options(kept)}, gone

    @contextmanager
    def taking_back(self) -> Iterator[None]:
        """Let what is refused within not be what the next start asks for."""
        try:
            yield
        except Refusal:
            if self.brings_options:
                self._store(self._granted or {})
            raise

    def grant_options(self, granted: Mapping[str, object]) -> None:
        """Store what this start was granted."""
        self._granted = granted
        self._store(granted)

    def _store(self, stored: Mapping[str, object]) -> None:
        spawner: Any = self
        spawner.user_options = dict(stored)
        if spawner.orm_spawner is not None:
            spawner.orm_spawner.user_options = dict(stored)
            # All requests share one session, and the next one to end rolls back what is open in it.
            # So the hub commits before it waits for anything, and nothing of it is open here.
            if session := object_session(spawner.orm_spawner):
                session.commit()

    def get_state(self) -> Plain:
        """KubeSpawner's state, and the options last granted."""
        state: Plain = super().get_state()  # type: ignore[misc]
        if self._granted is not None:
            state["granted_options"] = dict(self._granted)
        return state

    def load_state(self, state: Plain) -> None:
        """Take up what :meth:`get_state` has kept."""
        super().load_state(state)  # type: ignore[misc]
        self._granted = state.get("granted_options")

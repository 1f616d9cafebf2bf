"""The options that the hub has stored for a server, for a start that says nothing of its own."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any

from jupyterhub import orm
from sqlalchemy import event
from sqlalchemy.orm import object_session

from gpuspawner import gates, options, sent
from gpuspawner.hub import Refusal, log_name
from gpuspawner.offers import Offers
from gpuspawner.options import Gone
from gpuspawner.quoting import one_line

_log = logging.getLogger(__name__)

_stored_before: ContextVar[object] = ContextVar("gpuspawner_stored_before")
"""The options that this request's own have replaced; unset if it has brought none.

Each request has a context of its own, and the start that it asks for has it too.
"""


@event.listens_for(orm.Spawner.user_options, "set", retval=True)
def _store_what_can_be_stored(stored_for: orm.Spawner, value: object, *_: object) -> object:
    """Remember what JupyterHub replaces, and keep it if the new value could not be written."""
    before: object = stored_for.user_options
    _stored_before.set(before)
    if sent.is_within_bounds(value):
        return value
    owner = getattr(stored_for.user, "name", "nobody")
    server = one_line(f"{owner}:{stored_for.name}")
    _log.warning("Not storing the options sent for %s: %s", server, sent.WHY_TOO_MUCH)
    return before


class SavesOptions:
    """A mixin before KubeSpawner in a class's bases.

    JupyterHub stores what is sent before anybody has judged it, and takes it for what the next
    start asks that says nothing. So what was granted is stored in its place. What was refused gives
    way to what was stored before: by an earlier start, or without a start by PUT or PATCH.

    Attributes:
        gone: Of the stored options of this start, those that are not on offer any more.
    """

    gone: tuple[Gone, ...] = ()

    def stored_options(self) -> object:
        """What is stored, or nothing if it exceeds bounds, which older versions did not have."""
        spawner: Any = self
        if spawner.user_options != sent.TOO_MUCH:
            return spawner.user_options
        why = sent.WHY_TOO_MUCH
        spawner.log.warning("Not using the options stored for %s: %s", log_name(spawner), why)
        return {}

    def saved(self, offers: Offers) -> tuple[gates.Options, tuple[Gone, ...]]:
        """What is stored, as far as it is on offer, with defaults for what is not; and the rest."""
        spawner: Any = self
        ours, theirs = gates.split(spawner, self.stored_options())
        kept, gone = options.fall_back(ours, offers)
        return {**theirs, **options.user_options(kept)}, gone

    @contextmanager
    def taking_back(self) -> Iterator[None]:
        """If a start is refused within this block, restore what its request has replaced.

        A request that says nothing has replaced nothing; to JupyterHub 6, ``{}`` says nothing.
        """
        try:
            yield
        except Refusal:
            if _stored_before in copy_context():
                before = _stored_before.get()
                self._store(before if sent.is_within_bounds(before) else {})
            raise

    def grant_options(self, granted: Mapping[str, object]) -> None:
        """Store what this start was granted."""
        self._store(dict(granted))

    def _store(self, stored: object) -> None:
        spawner: Any = self
        spawner.user_options = stored or {}  # as JupyterHub reads it
        if spawner.orm_spawner is not None:
            spawner.orm_spawner.user_options = stored
            # All requests share one session, and the next one to end rolls back what is open in it.
            # So the hub commits before it waits for anything, and nothing of it is open here.
            if session := object_session(spawner.orm_spawner):
                session.commit()

"""The options that the hub stores for a server, for a start that says nothing of its own.

JupyterHub stores what is sent before anybody has judged it, and takes it for what the next start
asks that says nothing. So what was granted is stored in its place. What was refused gives way to
what was stored before: by an earlier start, or without a start by PUT or PATCH.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context

from jupyterhub import orm
from sqlalchemy import event

from gpuspawner.compat import jupyterhub
from gpuspawner.quoting import one_line
from gpuspawner.spawn import request_options
from gpuspawner.spawn.host import Host
from gpuspawner.spawn.refusal import Refusal

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
    if request_options.is_within_bounds(value):
        return value
    owner = getattr(stored_for.user, "name", "nobody")
    server = one_line(f"{owner}:{stored_for.name}")
    _log.warning("Not storing the options sent for %s: %s", server, request_options.WHY_TOO_MUCH)
    return before


def stored(spawner: Host) -> object:
    """What is stored, or nothing if it exceeds bounds, which older versions did not have."""
    if spawner.user_options != request_options.TOO_MUCH:
        return spawner.user_options
    name = one_line(jupyterhub.log_name(spawner))
    why = request_options.WHY_TOO_MUCH
    spawner.log.warning("Not using the options stored for %s: %s", name, why)
    return {}


@contextmanager
def restoring(spawner: Host) -> Iterator[None]:
    """If a start is refused within this block, restore what its request has replaced.

    A request that says nothing has replaced nothing; to JupyterHub 6, ``{}`` says nothing.
    """
    try:
        yield
    except Refusal:
        if _stored_before in copy_context():
            before = _stored_before.get()
            kept = before if request_options.is_within_bounds(before) else {}
            jupyterhub.store_options(spawner, kept)
        raise

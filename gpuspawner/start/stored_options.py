"""The options that the hub stores for a server, for starts that send none.

JupyterHub stores the options of a request before any gate checks them. So gpuspawner replaces them
by the options that were granted; if the start is refused, or waits in line, it restores those
stored before, by an earlier start or by PUT or PATCH without one.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any

from gpuspawner.compat import jupyterhub
from gpuspawner.kube.quoting import one_line
from gpuspawner.start import request_options
from gpuspawner.start.host import Host, log_name
from gpuspawner.start.refusal import Refusal

_log = logging.getLogger(__name__)

_stored_before: ContextVar[object] = ContextVar("gpuspawner_stored_before")
"""The stored options that this request's options have replaced; unset if it sent none.

Each request has its own context, and the start that it triggers runs in the same context.
"""


@jupyterhub.when_options_are_set
def _store_what_can_be_stored(stored_for: Any, value: object) -> object:
    """Remember the options that JupyterHub replaces; keep them if the new ones are too large."""
    before: object = stored_for.user_options
    _stored_before.set(before)
    if request_options.is_within_bounds(value):
        return value
    owner = getattr(stored_for.user, "name", "nobody")
    server = one_line(f"{owner}:{stored_for.name}")
    _log.warning("Not storing the options sent for %s: %s", server, request_options.WHY_TOO_MUCH)
    return before


def stored(spawner: Host) -> object:
    """The stored options, or none if they exceed the bounds, which older versions didn't have."""
    if spawner.user_options != request_options.TOO_MUCH:
        return spawner.user_options
    name = log_name(spawner)
    why = request_options.WHY_TOO_MUCH
    spawner.log.warning("Not using the options stored for %s: %s", name, why)
    return {}


def were_replaced() -> bool:
    """Whether the hub has read options in this request, and stored them."""
    return _stored_before in copy_context()


@contextmanager
def restoring(spawner: Host) -> Iterator[None]:
    """If a start is refused within this block, restore the options that its request replaced.

    A request without options has replaced nothing; JupyterHub 6 treats ``{}`` as no options.
    """
    try:
        yield
    except Refusal:
        if were_replaced():
            jupyterhub.store_options(spawner, _before())
        raise


def restore_for_next_start(spawner: Host) -> None:
    """Restore the options that this request replaced; the start goes on with those it sent."""
    if were_replaced():
        # In a context of its own: it is still the request that has replaced them.
        copy_context().run(jupyterhub.store_for_next_start, spawner, _before())


def _before() -> object:
    before = _stored_before.get()
    return before if request_options.is_within_bounds(before) else {}

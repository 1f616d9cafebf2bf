"""JupyterHub's unofficial names, and the differences between JupyterHub 5 and 6.

Read in ``jupyterhub/handlers/base.py`` (``spawn_single_user``), ``handlers/pages.py``, ``user.py``
and ``app.py`` of 5.5.0 and 6.1.1, and checked by running both.
"""

from collections.abc import Callable, Sequence
from typing import Any

from jupyterhub import orm
from jupyterhub.spawner import Spawner
from markupsafe import Markup
from sqlalchemy import event
from sqlalchemy.orm import object_session
from tornado import web

try:
    from jupyterhub.spawner import SpawnException
except ImportError:  # JupyterHub 5
    SpawnException = None

COUNTS_REFUSALS = SpawnException is None
"""Whether this hub counts a refused start as a failure of its own: JupyterHub 5 does, 6 doesn't."""

SpawnError: Any = SpawnException or web.HTTPError
"""The exception whose message the hub shows to users if a start raises it."""


def spawn_error_arguments(
    text: str, html: str, reason: str, status: int, logged: str
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of `SpawnError`; tornado logs *logged*."""
    if COUNTS_REFUSALS:
        return (status, "%s", logged), {}
    return (text,), {"reason": reason, "message_html": html, "status_code": status}


def log_name(spawner: Spawner) -> str:
    """The user and the server as the hub logs them; the names may contain any character."""
    name: str = spawner._log_name
    return name


def when_options_are_set(call: Callable[[Any, object], object]) -> Callable[[Any, object], object]:
    """Decorate a function that returns what to store when the hub sets a server's options.

    The function gets the server's row in the hub's database, and the options.
    """

    @event.listens_for(orm.Spawner.user_options, "set", retval=True)
    def listener(row: orm.Spawner, options: object, *_: object) -> object:
        return call(row, options)

    return call


def store_options(spawner: Spawner, options: object) -> None:
    """Store a server's options, for its next start and for the hub's answers about it."""
    spawner.user_options = options or {}  # as JupyterHub reads it
    if spawner.orm_spawner is None:
        return
    spawner.orm_spawner.user_options = options
    # All requests share one session, and the next one to end rolls back its open changes. So the
    # hub commits before it waits for anything, and has no open changes here.
    if session := object_session(spawner.orm_spawner):
        session.commit()


def announce_on_home_page(hub: Any, told: Callable[[Any], Markup]) -> None:
    """Show on the home page what *told* returns about the logged-in user, if anything.

    The hub's own announcement stays above it. The hub calls each template variable that is a
    function with the user (``handlers/base.py``, ``template_namespace``).
    """
    own = hub.template_vars.get("announcement_home", hub.template_vars.get("announcement"))

    def announcement(user: Any) -> str | None:
        before = own(user) if callable(own) else own
        added = told(user)
        if not added:
            return before if isinstance(before, str) else None
        return Markup("<br>").join([Markup(before or ""), added]) if before else added  # noqa: S704

    hub.template_vars["announcement_home"] = announcement


Handler = tuple[Any, ...]
"""A path, its handler, and perhaps the handler's arguments, as tornado takes them."""


def has_handler(hub: Any, path: str) -> bool:
    """Whether *path* is among the handlers added to the hub's own."""
    return any(entry[0] == path for entry in getattr(hub, "extra_handlers", ()))


def add_handlers(hub: Any, handlers: Sequence[Handler]) -> None:
    """Add handlers to those of a hub.

    The hub makes its web application from ``extra_handlers`` during its start, before or after this
    call. So this adds to both, in place, because the hub logs a warning if that trait is set. The
    handlers' paths are below the hub's own prefix.
    """
    hub.extra_handlers.extend(handlers)
    application = getattr(hub, "tornado_application", None)
    if application is not None:
        prefix = hub.hub_prefix.rstrip("/")
        application.add_handlers(".*", [(f"{prefix}{path}", *rest) for path, *rest in handlers])

"""JupyterHub's unofficial names, and the differences between JupyterHub 5 and 6.

Read in ``jupyterhub/handlers/base.py`` (``spawn_single_user``), ``handlers/pages.py``, ``user.py``
and ``app.py`` of 5.5.0 and 6.1.1, and checked by running both.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from weakref import ReferenceType, ref

from jupyterhub import orm
from jupyterhub.scopes import Scope
from jupyterhub.spawner import Spawner
from markupsafe import Markup
from sqlalchemy import event, inspect
from sqlalchemy.exc import SQLAlchemyError
from tornado import web
from tornado.httputil import HTTPServerRequest
from traitlets.config import Application

from gpuspawner.compat.database import database_of

try:
    from jupyterhub.spawner import SpawnException
except ImportError:  # JupyterHub 5
    SpawnException = None

T = TypeVar("T")
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
    store_for_next_start(spawner, options)


def store_for_next_start(spawner: Spawner, options: object) -> None:
    """Store a server's options, and leave those of a start that goes on as they are."""
    row, kept, held = spawner.orm_spawner, spawner.user_options, list[object]()

    def change() -> None:
        held.append(row.user_options)
        # A form's options are stored already, and a later request may have sent others.
        if held[0] == row.user_options != options and spawner.user_options == kept:
            row.user_options = options

    # The next request to end rolls back open changes of the shared session. So the hub commits
    # before it waits for anything, and has no open changes here.
    if stores := database_of(row):
        stores.write(change)


def identity(spawner: Spawner) -> object:
    """Return what is the same for all spawners of a server, and lives for as long as the server.

    That is its row. Another server may have its names later, and in SQLite its row's id too. The
    spawners of commands have no row, and are alone.
    """
    return spawner if spawner.orm_spawner is None else spawner.orm_spawner


def store_state(spawner: Spawner) -> None:
    """Store a server's state now; the hub itself does so only after a start and after a stop."""
    if stores := database_of(spawner.orm_spawner):
        stores.write(partial(_note_new_state, spawner))


async def until_state_is_stored(spawner: Spawner) -> None:
    """Store a server's state before anything else happens to it."""
    if stores := database_of(spawner.orm_spawner):
        await stores.written(partial(_note_new_state, spawner))


def _note_new_state(spawner: Spawner) -> None:
    """Note a server's state as it is by now, unless another spawner of the server has its own."""
    is_current = spawner.user.spawners.get(spawner.name) is spawner
    if is_current and stored_state(spawner) != (state := spawner.get_state()):
        note_state(spawner, state)


def note_state(spawner: Spawner, state: Mapping[str, Any]) -> None:
    """Let the hub store a server's state with its own next commit."""
    if spawner.orm_spawner is not None:
        spawner.orm_spawner.state = state


async def surviving(spawner: Spawner, act: Callable[[], Awaitable[T]]) -> T:
    """Do something for a server, and again whenever the hub's database fails in it."""
    stores = database_of(spawner.orm_spawner)
    return await (stores.surviving(act) if stores else act())


def is_gone(spawner: Spawner) -> bool:
    """Whether the hub has deleted the server, perhaps with its user, since it asked for it."""
    row = spawner.orm_spawner
    return isinstance(row, orm.Spawner) and bool(inspect(row).was_deleted)


def is_starting(spawner: Spawner) -> bool:
    """Whether the hub has begun to start the server, or to make ready for that."""
    return bool(spawner.pending == "spawn")


def forget_beginning(copied: Spawner) -> None:
    """Let the copy of a spawner be one that the hub hasn't begun to start."""
    copied._spawn_pending = copied._start_pending = False


def may_have_named_servers(spawner: Spawner) -> bool:
    """Return whether the server's owner may have others beside the default server."""
    return bool(spawner.user.allow_named_servers)


def code_before_a_start(spawner: Spawner) -> list[Any]:
    """Return an administrator's code that the hub calls before the ``pre_spawn_hook``, or None.

    See ``user.py``, ``User.spawn``; the methods of spawners aside.
    """
    prepares = getattr(spawner.authenticator, "pre_spawn_start", None)
    is_own = getattr(prepares, "__module__", "") != "jupyterhub.auth"
    overrides = _group_overrides(spawner)
    return [
        spawner.auth_state_hook,
        prepares if is_own else None,
        spawner.group_overrides if overrides is None else None,
    ]


def group_overrides(spawner: Spawner) -> list[Mapping[str, Any]]:
    """Return what the configuration overrides for the groups of a server's owner, in order.

    Nothing if that depends on functions, which the hub calls only for a start (``spawner.py``,
    ``apply_group_overrides``).
    """
    listed = _group_overrides(spawner)
    if not listed:
        return []
    groups = {group.name for group in spawner.user.groups}
    found = [listed[key] for key in sorted(listed)]
    return [it["spawner_override"] for it in found if groups & set(it["groups"])]


def _group_overrides(spawner: Spawner) -> Mapping[str, Any] | None:
    """Return what is overridden for groups; None if functions have a say."""
    listed = getattr(spawner, "group_overrides", None) or {}
    if callable(listed):
        return None
    values = (value for it in listed.values() for value in it["spawner_override"].values())
    return None if any(map(callable, values)) else listed


async def tell_auth_state(spawner: Spawner) -> None:
    """Run the ``auth_state_hook``, as the hub does before it draws a form or starts a server."""
    await spawner.run_auth_state_hook(await spawner.user.get_auth_state())


def begins_start(spawner: Spawner) -> bool:
    """Whether the hub begins a start when it calls the ``auth_state_hook``.

    A form has the hook too, perhaps while a start in another tab goes on. Right after the hook of a
    start, the hub sets when the server started, and commits, without waiting for anything
    (``user.py``, ``User.spawn``).
    """
    has_row = spawner.orm_spawner is not None
    return bool(spawner._start_pending) and has_row and not has_begun(spawner)


def has_begun(spawner: Spawner) -> bool:
    """Whether the hub has stored when the server started.

    It does so some commits after it has stored that there is a server.
    """
    return spawner.orm_spawner is not None and spawner.orm_spawner.started is not None


def forget_server(spawner: Spawner) -> None:
    """Note that a server whose start was cancelled has no address.

    The hub does so if a start fails, but not if somebody cancels it: it calls such a server ready
    until it has stopped it, and forever if the cancellation takes longer than a second.
    """
    row, its = spawner.orm_spawner, getattr(spawner._server, "orm_server", None)

    def forget() -> None:
        if row is None or row.server is its:  # no other start has begun
            spawner.server = None

    if stores := database_of(row):
        stores.write(forget)
    else:
        forget()


def stored_state(spawner: Spawner) -> object:
    """Return a server's state as the hub has stored it; None if it hasn't."""
    return spawner.orm_spawner.state if spawner.orm_spawner is not None else None


def has_server(spawner: Spawner) -> bool:
    """Whether the hub's database says that the server runs, or starts."""
    return spawner.orm_spawner is not None and spawner.orm_spawner.server is not None


def stopped(user: Any) -> dict[str, object]:
    """Return the stored states of a user's servers that don't run; the default one's name is ""."""
    try:
        rows = getattr(user, "orm_spawners", None) or {}  # a service has none
        return {name: row.state for name, row in rows.items() if row.server is None}
    except SQLAlchemyError:  # the page that tells of the database's error has a header too
        user.db.rollback()
        return {}


def running(user: Any) -> dict[str, Any]:
    """Return the spawners of a user's servers that are up."""
    spawners = getattr(user, "spawners", None) or {}
    return {name: it for name, it in list(spawners.items()) if it.ready}


def hub() -> Any:
    """Return the hub of this process; None if there is none, as in a command.

    ``jupyterhub.app`` would bring in the whole hub, also for programs that only list spawners.
    """
    return Application.instance() if Application.initialized() else None


def starting(user: Any) -> dict[str, Any]:
    """Return the spawners of a user's servers that start, or wait for that."""
    spawners = getattr(user, "spawners", None) or {}
    return {name: it for name, it in list(spawners.items()) if it.pending == "spawn"}


Told = Callable[[Any], Markup]
"""Says something to the logged-in user, or nothing. On some pages, nobody is logged in."""


def announce(hub: Any, everywhere: Told, at_home: Told) -> None:
    """Show on the hub's pages what *everywhere* returns, and on the home page *at_home* too.

    The page with the form shows neither: it says it itself. The hub's own announcements stay above.
    The hub calls each template variable that is a function with the user (``handlers/base.py``,
    ``template_namespace``). A page's own announcement replaces the general one if it is a string.
    """
    variables = hub.template_vars
    general = variables.get("announcement")
    variables.setdefault("announcement_spawn", "" if general is None else general)
    announce_on(hub, "home", lambda user: _joined(everywhere(user), at_home(user)))
    variables["announcement"] = _below(general, everywhere)


def announce_on(hub: Any, page: str, told: Told) -> None:
    """Show what *told* returns on one of the hub's pages, below what is announced there."""
    variables, name = hub.template_vars, f"announcement_{page}"
    variables[name] = _below(variables.get(name, variables.get("announcement")), told)


def _below(own: Any, told: Told) -> Callable[[Any], Any]:
    """Return a function for the hub that adds what is told to its own announcement.

    An administrator's template may read another type than a text, such as a list: that stays.
    """

    def announcement(user: Any) -> Any:
        before = own(user) if callable(own) else own
        before = "" if before is None else before
        if not isinstance(before, str) or not (added := told(user)):
            return before
        return _joined(Markup(before), added)  # noqa: S704, the administrator's HTML

    return announcement


def _joined(*texts: Markup) -> Markup:
    return Markup("<br>").join(text for text in texts if text)


_UNTIL_SERVED = 0.05
"""How often to look whether the hub has its web application, in seconds."""

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


def add_templates(hub: Any, folder: str) -> None:
    """Let the hub find templates in a folder, behind an administrator's and before its own.

    The hub makes its loaders during its start, before or after this call (``app.py``,
    ``init_tornado_settings``).
    """
    own = str(Path(hub.data_files_path) / "templates")
    environment = hub.tornado_settings.get("jinja2_env")
    loaders = environment.loader.loaders if environment is not None else ()
    for paths in (hub.template_paths, *(getattr(it, "searchpath", []) for it in loaders)):
        paths.insert(paths.index(own) if own in paths else len(paths), folder)


def holds_for_all(handler: Any, *names: str) -> bool:
    """Whether the caller of a request has these scopes for everybody, and not only for some."""
    return all(handler.parsed_scopes.get(it) is Scope.ALL for it in names)


_request: ContextVar[ReferenceType[HTTPServerRequest]] = ContextVar("gpuspawner_request")
"""Weak, because what a start leaves running has the context of the request that began it."""


def _answered() -> HTTPServerRequest | None:
    found = _request.get(None)
    return found() if found else None


def is_heard() -> bool:
    """Whether `hear` has called its function for the request that the hub answers."""
    return _answered() is not None


def xsrf_token(spawner: Spawner) -> str:
    """Return the token for the buttons of the page that the hub draws; "" if it draws none.

    A spawner's handler may be that of an earlier page, and of somebody else's: the hub sets it for
    each form, and forgets it after a start. A form that was sent had the token.
    """
    request, handler = _answered(), spawner.handler
    if request is None:
        return ""
    is_its = handler is not None and handler.request is request
    token = handler.xsrf_token if is_its else request.arguments.get("_xsrf", [b""])[-1]
    return str(token, "ascii", "replace")


async def hear(hub: Any, heard: Callable[[HTTPServerRequest], object]) -> None:
    """Call *heard* for each request to a hub, in the context in which the hub answers it.

    The hub makes its web application late in its start, and gives no request to the functions of
    `announce`.
    """

    class Hearing(web.OutputTransform):
        def __init__(self, request: HTTPServerRequest) -> None:
            _request.set(ref(request))
            heard(request)

    while getattr(hub, "tornado_application", None) is None:  # noqa: ASYNC110, it tells nobody
        await asyncio.sleep(_UNTIL_SERVED)
    hub.tornado_application.add_transform(Hearing)

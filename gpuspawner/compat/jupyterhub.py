"""JupyterHub's unofficial names, and the differences between JupyterHub 5 and 6.

Read in ``jupyterhub/handlers/base.py`` (``spawn_single_user``), ``handlers/pages.py``, ``user.py``
and ``app.py`` of 5.5.0 and 6.1.1, and checked by running both.
"""

from asyncio import Future
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

from jupyterhub import orm
from jupyterhub.spawner import Spawner
from jupyterhub.utils import utcnow
from sqlalchemy import event, inspect
from sqlalchemy.exc import SQLAlchemyError
from tornado import web
from traitlets.config import Application

from gpuspawner.compat.database import database_of
from gpuspawner.kube.objects import mapping

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


_forgiven: WeakSet[Future[Any]] = WeakSet()
"""The starts whose failure isn't counted."""


def forgive(spawner: Spawner) -> None:
    """Keep JupyterHub 5 from counting a start's failure, and from stopping itself because of it.

    The hub counts in a callback of ``_spawn_future``, compares with the limit on the spawner, and
    resets the count at any success. A limit of 0 keeps that callback from stopping the hub; ours
    runs directly after it, so the count is never seen too high. A start may be refused twice, as
    one that waits in line again, but the hub counts it once.
    """
    future, handler = spawner._spawn_future, spawner.handler
    if not COUNTS_REFUSALS or handler is None or future is None or future.done():
        return  # JupyterHub doesn't count a start that is refused before it begins
    if future in _forgiven:
        return
    _forgiven.add(future)
    limit = spawner.consecutive_failure_limit
    settings = handler.settings

    def take_back(_: object) -> None:
        spawner.consecutive_failure_limit = limit
        settings["failure_count"] = max(0, settings.get("failure_count", 0) - 1)

    spawner.consecutive_failure_limit = 0
    future.add_done_callback(take_back)


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


def is_imagined(spawner: Spawner) -> bool:
    """Whether the hub never starts a server by this spawner: it has none of its database's rows."""
    return not isinstance(spawner.orm_spawner, orm.Spawner)


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


def group_overrides(spawner: Spawner, trait: str = "") -> list[Mapping[str, Any]]:
    """Return what the configuration overrides for the groups of a server's owner, in order.

    With a *trait*, only the overrides that set it: most hubs have none, and need no groups.
    Nothing if that depends on functions, which the hub calls only for a start (``spawner.py``,
    ``apply_group_overrides``).
    """
    listed = _group_overrides(spawner) or {}
    found = [listed[key] for key in sorted(listed)]
    if trait:
        found = [it for it in found if trait in mapping(mapping(it).get("spawner_override"))]
    if not found:
        return []
    groups = {group.name for group in spawner.user.groups}
    return [it["spawner_override"] for it in found if groups & set(it["groups"])]


def _group_overrides(spawner: Spawner) -> Mapping[str, Any] | None:
    """Return what is overridden for groups; None if functions have a say."""
    listed = getattr(spawner, "group_overrides", None) or {}
    if callable(listed):
        return None
    # The hub reads an override only for somebody of its groups: a mistake is theirs alone.
    overrides = (mapping(mapping(it).get("spawner_override")) for it in listed.values())
    values = (value for it in overrides for value in it.values())
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


def may_run(spawner: Spawner) -> bool:
    """Whether the hub takes the server for a running one, and isn't about to stop it."""
    return has_server(spawner) and not spawner._stop_pending


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
    return {name: it for name, it in _spawners(user) if it.ready}


def running_or_checked(user: Any) -> dict[str, Any]:
    """Return those, and the spawners of servers whose check at the hub's start isn't over."""
    return {name: it for name, it in _spawners(user) if it.ready or it.pending == "check"}


def starting(user: Any) -> dict[str, Any]:
    """Return the spawners of a user's servers that start, or wait for that."""
    return {name: it for name, it in _spawners(user) if is_starting(it)}


def _spawners(user: Any) -> list[tuple[str, Any]]:
    return list((getattr(user, "spawners", None) or {}).items())


def hub() -> Any:
    """Return the hub of this process; None if there is none, as in a command.

    ``jupyterhub.app`` would bring in the whole hub, also for programs that only list spawners.
    """
    return Application.instance() if Application.initialized() else None


def users(hub: Any) -> Mapping[str, Any]:
    """Return the hub's users, found by name; none before it has its settings.

    Who asks for its ``users`` earlier makes them with the administrator's few settings alone, and
    so without a spawner class, for as long as the hub runs (``_users_default`` in ``app.py``). An
    authenticator may let other tasks run before that: as it makes roles, say, or adds users.
    """
    found: Mapping[str, Any] = hub.tornado_settings.get("users", {})
    return found


def all_users(hub: Any) -> list[Any]:
    """Return the users whom the hub has loaded: all who have a server that starts or runs."""
    return list(users(hub).values())


def unused_for(seconds: float) -> frozenset[tuple[str, str]]:
    """Return the namespaces and names of the pods of servers that nobody has used for so long.

    The hub knows it from its proxy and from the servers themselves.
    """
    before = utcnow(with_tz=False) - timedelta(seconds=seconds)
    servers = (it for user in all_users(hub()) for it in running(user).values())
    try:
        last = {(it.namespace, it.pod_name): it.orm_spawner.last_activity for it in servers}
    except SQLAlchemyError:  # who can't be looked up isn't idle
        hub().db.rollback()
        return frozenset()
    return frozenset(key for key, moment in last.items() if moment and moment <= before)

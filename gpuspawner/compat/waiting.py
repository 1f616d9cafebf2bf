"""What a hub has to let people wait in line: its limits, and a start on behalf of a user."""

import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, TypeVar

from jupyterhub import orm
from jupyterhub.utils import make_ssl_context, url_escape_path, utcnow
from sqlalchemy import inspect, text
from tornado.httpclient import HTTPClientError, HTTPRequest, HTTPResponse
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from gpuspawner.compat.database import Database, database_of
from gpuspawner.compat.jupyterhub import hub, users
from gpuspawner.kube.quoting import one_line

log = logging.getLogger(__name__)

T = TypeVar("T")
NOT_YET = frozenset({409, 429, 503})
"""The answers to a start that may be another one in a moment: the hub's limits, or our refusal.

Not 500: that is a failed start, and the hub may end after some of them.
"""
_LIMITS = ("concurrent_spawn_limit", "active_server_limit")
_uncounted = Counter[object]()
"""The servers that the limits leave out, and how many contexts say so."""
_TOKEN_SECONDS = 60
_REQUEST_SECONDS = 60.0


@contextmanager
def uncounted(server: object) -> Iterator[None]:
    """Leave a server that waits in line out of the hub's limits on servers that start or run.

    The hub counts each pending spawn (``handlers/base.py``, ``spawn_single_user``), so the limits
    are raised meanwhile. It reads them from the settings of its web application each time. It
    counts a server once, though the request that starts it may still be open while it waits.

    Args:
        server: As `gpuspawner.compat.jupyterhub.identity`.
    """
    if not _uncounted[server]:
        _raise_limits(1)
    _uncounted[server] += 1
    try:
        yield
    finally:
        _uncounted[server] -= 1
        if not _uncounted[server]:
            del _uncounted[server]
            _raise_limits(-1)


def _raise_limits(by: int) -> None:
    settings = _settings()
    for name in _LIMITS:
        if settings.get(name):  # for the hub, 0 is none
            settings[name] += by


def _settings() -> dict[str, Any]:
    application = getattr(hub(), "tornado_application", None)
    return application.settings if application is not None else {}


async def begin_now(spawner: Any) -> None:
    """Let the time of a server begin now; for the hub it began before the server waited in line.

    Programs that stop idle or old servers read these times. While the hub's database fails, the
    server waits: the hub has to store more of its start.
    """
    row = spawner.orm_spawner

    def begin() -> None:
        row.started = row.last_activity = utcnow(with_tz=False)

    if stores := database_of(row):
        await stores.written(begin)


def is_stored(row: Any) -> bool:
    """Whether the hub has this server; the owner may have deleted it, and made another."""
    return bool(inspect(row).persistent)


def log_name(row: Any) -> str:
    """Name a server as the hub's log does."""
    if not is_stored(row):
        return "A server that is deleted"
    return one_line(":".join(filter(None, (row.user.name, row.name))))


def stored_states(word: str) -> Iterator[tuple[Any, object]]:
    """Yield the stored states that contain a word, by the server's row.

    A state that isn't JSON is left out, for it would keep the hub from the others.
    """
    db = hub().db
    like = text("state LIKE :pattern").bindparams(pattern=f'%"{word}"%')
    for (number,) in db.query(orm.Spawner.id).filter(like).all():
        try:
            stored = db.get(orm.Spawner, number)
        except ValueError:
            log.warning("The state of server %d in the hub's database isn't JSON", number)
            continue
        if stored.user:
            yield stored, stored.state


def is_active(row: Any) -> bool:
    """Whether a server starts, runs or stops, or the hub checks it after its own restart."""
    user = users(hub()).get(row.user.name) if is_stored(row) else None
    spawner = user.spawners.get(row.name) if user is not None else None
    return spawner is not None and bool(spawner.active) and spawner.orm_spawner is row


async def change_state(row: Any, change: Callable[[object], object]) -> None:
    """Change what the hub has stored as a server's state, if it still has it and isn't active."""

    def write() -> None:
        if is_stored(row) and not is_active(row):
            row.state = change(row.state)

    await Database.of(hub().db).written(write)


async def surviving(act: Callable[[], Awaitable[T]]) -> T:
    """Do something, and again whenever the hub's database fails in it."""
    return await Database.of(hub().db).surviving(act)


async def answers() -> bool:
    """Whether the hub's own API answers.

    Before the hub listens, somebody else may, such as a service mesh with HTTP 503.
    """
    if not _settings():
        return False
    try:
        answer = await _fetch(HTTPRequest(hub().hub.api_url, request_timeout=_REQUEST_SECONDS))
    except (OSError, HTTPClientError):
        return False
    return int(answer.code) < HTTPStatus.INTERNAL_SERVER_ERROR


async def start(row: Any, options: object) -> int:
    """Start a server as its owner would by REST; return the HTTP status.

    It is 503 if the database has failed meanwhile: then the hub's answer says nothing.

    Raises:
        ValueError: The owner may not start servers.
    """
    user_name, server_name = row.user.name, row.name
    user, stores = users(hub())[user_name], Database.of(hub().db)
    token = user.new_api_token(
        note="gpuspawner: continue to wait in line",
        scopes=["servers!user"],
        expires_in=_TOKEN_SECONDS,
    )
    path = f"/users/{url_escape_path(user_name)}/servers/{url_escape_path(server_name)}"
    request = HTTPRequest(
        f"{hub().hub.api_url.rstrip('/')}{path}",
        method="POST",
        headers={"Authorization": f"token {token}", "Content-Type": "application/json"},
        body=json.dumps(options),
        request_timeout=_REQUEST_SECONDS,
    )
    before = stores.rollbacks
    with uncounted(row):  # it may start at once, but most of those who were in line wait again
        status = int((await _fetch(request)).code)
    return status if stores.rollbacks == before else 503


async def _fetch(request: HTTPRequest) -> HTTPResponse:
    this = hub()
    if this.internal_ssl:
        request.ssl_options = make_ssl_context(
            this.internal_ssl_key, this.internal_ssl_cert, cafile=this.internal_ssl_ca
        )
    # The hub's usual client may be pycurl's, which takes no `ssl_options`. The shared one has few
    # connections.
    client = SimpleAsyncHTTPClient(force_instance=True)
    try:
        return await client.fetch(request, raise_error=False)
    finally:
        client.close()

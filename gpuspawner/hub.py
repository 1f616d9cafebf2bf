"""All that differs between JupyterHub 5 and 6, and what the hub makes of a refusal.

Everything here was established by running both versions; what the hub does is read in
``jupyterhub/handlers/base.py`` (``spawn_single_user``), ``handlers/pages.py``,
``apihandlers/users.py`` and ``user.py`` of 5.5.0 and 6.1.1.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from jupyterhub.spawner import Spawner
from tornado import web

from gpuspawner import language, messages
from gpuspawner.messages import Message, OnForm
from gpuspawner.quoting import one_line

try:
    from jupyterhub.spawner import SpawnException
except ImportError:  # JupyterHub 5
    SpawnException = None

T = TypeVar("T")

COUNTS_REFUSALS = SpawnException is None
"""Whether this hub counts a refusal as a failure of the hub: JupyterHub 5 does, 6 does not."""


# No font shows these characters. Drawn anew by each process, so that nobody can name a server so.
_MARK = "".join(secrets.choice("\u2061\u2062\u2063\u2064") for _ in range(16))


class _Said(str):
    """A refusal's text on its way to the log; it is known there by its class."""

    __slots__ = ()


class Refusal(SpawnException or web.HTTPError):  # type: ignore[misc]
    """A spawn that does not start, for a reason that its owner can read and act on.

    The hub shows ``jupyterhub_message`` on every page on which a spawn can fail, and its HTML
    twin where it has room for it; REST answers carry the text.

    Args:
        message: What to tell, as text and as HTML.
        reason: A short fixed slug, for metrics and logs (``"busy"``).
        status: The HTTP status, 400 to 499.
    """

    def __init__(self, message: Message, *, reason: str, status: int = 409) -> None:
        if SpawnException is None:
            super().__init__(status, "%s", _Said(message.text))
        else:
            super().__init__(
                message.text, reason=reason, message_html=message.html, status_code=status
            )
        self.text = message.text
        self.slug = reason
        self.jupyterhub_message = message.text
        self.jupyterhub_html_message = message.html

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str) -> str:
        """The hub writes it into the text of its own lines, where nothing else is left of it."""
        return f"{self.text}{_MARK}"

    def get_message(self) -> str:
        """What tornado logs of it."""
        return _Said(self.text)


def log_name(spawner: Spawner) -> str:
    """The user and the server, for one line of a log: JupyterHub 5 takes any name for a server."""
    return one_line(spawner._log_name)  # noqa: SLF001


def refuse(
    spawner: Spawner,
    message: Message,
    *,
    reason: str,
    status: int = 409,
    details: str = "",
    on_form: OnForm | None = None,
) -> Refusal:
    """Make the refusal of *spawner*'s start: to be raised at once.

    It is logged here, in one line, and the hub's own lines about it are left out: a full cluster
    is no fault of the hub's, and a traceback would say that it is.

    Args:
        spawner: The spawner whose start or form is refused.
        message: What to tell, as text and as HTML.
        reason: A short fixed slug.
        status: The HTTP status, 400 to 499.
        details: What the log has for administrators beside the text.
        on_form: What the form tells that is drawn again; None for the message alone.
    """
    refusal = Refusal(message, reason=reason, status=status)
    if (drafted := draft()) is not None:
        drafted.told = on_form or OnForm(message)
    _forgive(spawner)
    _quieten(spawner.log)
    line = f"{refusal.text} [{details}]" if details else refusal.text
    spawner.log.info("Not starting %s (%s): %s", log_name(spawner), reason, line)
    return refusal


_under_way: WeakValueDictionary[tuple[str, str], asyncio.Task[Any]] = WeakValueDictionary()
"""The requests whose form or query has passed the gate, by user and server, until they end."""


def refuse_twice(spawner: Spawner) -> None:
    """Refuse a form or query whose server another request has begun to start meanwhile.

    The hub looks before it asks the spawner; where it finds out later it answers HTTP 500. The
    refusal is this request's alone: the start that is under way goes on, and counts as it comes.

    Raises:
        Refusal: The server is starting or running, or another request is about to start it.
    """
    current = spawner.user.spawners.get(spawner.name)
    other = _under_way.get((spawner.user.name, spawner.name))
    another_starts_it = other is not None and not other.done() and other is not _request()
    if another_starts_it or (current is not None and current.active):
        raise Refusal(messages.already_started(), reason="already-started", status=400)


def pass_alone(spawner: Spawner) -> None:
    """Let this request, and no other until it ends, go on to start the server.

    Some ticks lie between the gate's answer and the hub's own mark that the server is starting.

    Raises:
        Refusal: As :func:`refuse_twice`.
    """
    refuse_twice(spawner)
    if (request := _request()) is not None:
        _under_way[spawner.user.name, spawner.name] = request


def _request() -> asyncio.Task[Any] | None:
    drafted = draft()
    return drafted.request if drafted is not None else None


def _forgive(spawner: Spawner) -> None:
    """Keep JupyterHub 5 from counting the coming refusal toward consecutive_failure_limit.

    The hub counts in a callback of ``_spawn_future``, compares with the limit on the spawner, and
    resets the count at any success. A limit of 0 keeps that callback from stopping the hub; ours
    runs directly after it, so the count is never seen too high.
    """
    future, handler = spawner._spawn_future, spawner.handler  # noqa: SLF001
    if not COUNTS_REFUSALS or handler is None or future is None or future.done():
        return  # what is refused before it begins is not counted
    limit = spawner.consecutive_failure_limit
    settings = handler.settings

    def take_back(_: object) -> None:
        spawner.consecutive_failure_limit = limit
        settings["failure_count"] = max(0, settings.get("failure_count", 0) - 1)

    spawner.consecutive_failure_limit = 0
    future.add_done_callback(take_back)


class _NoEcho(logging.Filter):
    """Leaves out what is written about a refusal after its own line, which has its text alone."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], Refusal):
            return False
        written = record.args.values() if isinstance(record.args, Mapping) else record.args or ()
        if any(isinstance(it, Refusal | _Said) for it in written):
            return False
        return _MARK not in str(record.msg)


_no_echo = _NoEcho()


def _quieten(log: logging.Logger) -> None:
    """Put the filter on the handlers of *log*: a logger's own filter misses tornado's lines.

    asyncio tells of the task that a slow start's page no longer waited for.
    """
    for handler in log.handlers:
        handler.addFilter(_no_echo)
    logging.getLogger("asyncio").addFilter(_no_echo)


@dataclass
class Draft:
    """What a form or query of this request holds, for the form that is shown again.

    The hub renders that form from another spawner object than the one asked, the default server's
    even for a named server. Both belong to one request, and so to one context.

    Attributes:
        options: The options as sent.
        told: Why they were refused; None while they are not.
        request: The task in which the hub answers this request.
    """

    options: object
    told: OnForm | None = None
    request: asyncio.Task[Any] | None = None


_draft: ContextVar[Draft | None] = ContextVar("gpuspawner_draft", default=None)


def keep_draft(options: object) -> Draft:
    """Remember what this request holds. To be called in the hub's own task, before any await."""
    draft = Draft(options, request=asyncio.current_task())
    _draft.set(draft)
    return draft


def draft() -> Draft | None:
    """What a form or query of this request holds; None for a page that was merely opened."""
    return _draft.get()


def speak(spawner: Any, handler: web.RequestHandler | None = None) -> None:
    """Tell whoever is served by this request in their own language, from here on.

    The hub takes the handler from a spawner at the end of each start, and never gives one to the
    default server's for a form of a named one: what has begun in a language then goes on in it.

    Args:
        spawner: The spawner that is asked; its trait ``language`` comes first.
        handler: What serves the request; None for the one that the hub has given the spawner.
    """
    if spawner.language:
        language.speak(spawner.language)
    elif serving := handler or spawner.handler:
        language.speak(serving.request.headers.get("Accept-Language", ""))


def at_once(begin: Callable[[], Coroutine[Any, Any, T]]) -> T | Coroutine[Any, Any, T]:
    """Run a coroutine if it can end without waiting.

    The hub wraps an awaitable from a hook into a task, and with ``slow_spawn_timeout`` 0 it has
    answered "202 Accepted" before that task runs. What needs no waiting is therefore done before
    the hook returns, so that a refusal is the answer itself.

    A coroutine that has to wait is closed and begun anew by whoever awaits it. It never goes on in
    another task than the one it began in: a time-out within it would cancel that one.

    Args:
        begin: Makes the coroutine. What it does before it first waits may be done twice.

    Returns:
        The result, or, where the coroutine has to wait, a new one that has not begun.
    """
    attempt = begin()
    try:
        attempt.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    attempt.close()
    return begin()

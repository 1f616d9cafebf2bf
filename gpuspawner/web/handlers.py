"""The hub's handlers for requests from open forms and from users' scripts.

Like the hub's own REST API, they accept a token, or a login cookie together with the XSRF token.
Those that answer questions about a server require the scope ``servers`` for its user, and change
nothing; `StopHandler` requires ``delete:servers``.
"""

import asyncio
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

from jupyterhub.apihandlers import APIHandler
from jupyterhub.handlers import BaseHandler
from jupyterhub.scopes import needs_scope
from jupyterhub.user import User
from tornado import web

from gpuspawner import runtime
from gpuspawner.compat.pages import add_handlers
from gpuspawner.compat.rights import Rights
from gpuspawner.form import addresses
from gpuspawner.form.alternative_button import KEPT, value_of
from gpuspawner.form.view_model import STATIC
from gpuspawner.gates.accelerators import Accelerators
from gpuspawner.gates.preview import preview
from gpuspawner.gates.sources import Sources
from gpuspawner.gates.wait_option import in_schema
from gpuspawner.offers import options
from gpuspawner.runtime import Runtime
from gpuspawner.start.host import Host, set_locale
from gpuspawner.start.refusal import Refusal
from gpuspawner.web.answers import decision, states
from gpuspawner.web.broadcast import Broadcast
from gpuspawner.web.open_form import OpenForm, opened
from gpuspawner.web.open_streams import Crowd, Stream, TooManyStreamsError
from gpuspawner.web.rate_limits import Questions, TooManyQuestions, counted

# The base of the handlers that answer questions about one server.


class Answering(APIHandler):  # type: ignore[misc]
    """Sends data, which is only valid now, and never a page or a script."""

    def set_default_headers(self) -> None:
        """Let no browser guess another type than the answer's own, also not of an error."""
        super().set_default_headers()
        self.set_header("X-Content-Type-Options", "nosniff")

    def answer(self, found: dict[str, object]) -> None:
        """Send an answer."""
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(found))


class AboutAServer(Answering):
    """Finds the server."""

    def sources(self, user_name: str, server_name: str) -> Sources:
        """Return a server's sources, or those of the default server if it doesn't exist yet.

        Raises:
            HTTPError: 404: there is no such user.
        """
        user = self._owner(user_name)
        if user is None:
            raise web.HTTPError(404, "No such user")
        spawner = user.spawners.get(server_name) or user.spawner
        set_locale(spawner, self)
        sources: Sources = spawner.gpuspawner_gates.sources
        return sources

    async def accelerators(self, user_name: str, server_name: str) -> Accelerators:
        """Return the accelerators that are on offer to a server's owner.

        Raises:
            HTTPError: 404: there is no such user, or the hub offers no accelerators.
        """
        offered = await self.sources(user_name, server_name).offered()
        if not isinstance(offered, Accelerators):
            raise web.HTTPError(404, "This hub offers profiles, not accelerators")
        return offered

    def _owner(self, user_name: str) -> User | None:
        """Find a user; most ask about their own servers, and are already loaded."""
        asks = self.current_user
        is_owner = isinstance(asks, User) and asks.name == user_name
        return asks if is_owner else self.find_user(user_name)


@contextmanager
def _conflicts() -> Iterator[None]:
    """Answer HTTP 409 with a refusal's text if what is on offer to an owner can't be read."""
    try:
        yield
    except Refusal as refusal:
        raise web.HTTPError(409, "%s", refusal.text) from None


# Stops one's own server from the spawn form, and comes back to the form.

_PATIENCE = 5.0
"""How long the form waits until its figures don't count the stopped server, in seconds."""


class StopHandler(BaseHandler):  # type: ignore[misc]
    """Stops a server for a button of the form."""

    _questions = Questions()

    @needs_scope("delete:servers")  # type: ignore[untyped-decorator, unused-ignore]
    async def post(self, user_name: str, server_name: str) -> None:
        """Stop the server, and send the browser back to the form."""
        async with counted(self._questions, user_name):
            user = self.find_user(user_name)
            if user is None:
                raise web.HTTPError(404, "No such user")
            spawner = user.spawners.get(server_name)
            if spawner is not None and spawner.ready:
                if self.current_user != user:
                    spawner.gpuspawner_gates.server_state.stopped_by_another()
                await self.stop_single_user(user, server_name)
                await _until_not_counted(runtime.current(spawner), spawner)
            self.redirect(self.back(user))

    def back(self, user: User) -> str:
        """Return the address of the page whose button this is, with what was chosen there."""
        form = self.get_query_argument("form", "")
        path = addresses.path_of(user.name, form).rstrip("/")
        fields = {name: self.get_body_arguments(name) for name in self.request.body_arguments}
        chosen = value_of(fields)
        query = "?" + urlencode({f"opt-{KEPT}": chosen}) if chosen else ""
        # The fragment moves the focus to the figures, which have changed.
        return f"{self.hub.base_url}spawn/{path}{query}#{addresses.USAGE}"


async def _until_not_counted(running: Runtime, spawner: Host) -> None:
    """Wait a moment until the hub sees that the pod is gone: KubeSpawner may see it earlier."""
    key, accounts = (spawner.namespace, spawner.pod_name), running.accounts
    deadline = time.monotonic() + _PATIENCE
    while accounts is not None and key in accounts.usage.pods:
        if not await accounts.following.changed(deadline - time.monotonic()):
            return


MOST_BYTES = 64 * 1024
"""The largest question, in bytes; a form's options take some hundred."""


class StatesHandler(AboutAServer):
    """Serves the availability of each accelerator or profile."""

    _questions = Questions()

    @needs_scope("servers")  # type: ignore[untyped-decorator, unused-ignore]
    async def get(self, user_name: str, server_name: str) -> None:
        """Send the availability for the server's owner."""
        async with counted(self._questions, user_name):
            match await self.sources(user_name, server_name).offered():
                case Accelerators() as accelerators:
                    self.answer(await states(accelerators.of(server_name)))
                case None:
                    raise web.HTTPError(404, "This hub offers no choices")
                case profiles:
                    with _conflicts():
                        self.answer({"profiles": await profiles.of(server_name).states()})


class DecisionHandler(AboutAServer):
    """Serves the decision on whether options could start now."""

    _questions = Questions()

    @needs_scope("servers")  # type: ignore[untyped-decorator, unused-ignore]
    async def post(self, user_name: str, server_name: str) -> None:
        """Send the decision for the server's owner about the options in the body."""
        if len(self.request.body) > MOST_BYTES:
            raise web.HTTPError(413, "The options are too long")
        async with counted(self._questions, user_name):
            offered = await self.accelerators(user_name, server_name)
            found, offers = await preview(offered, self._options(), server_name)
            self.answer(decision(found, offers))

    def _options(self) -> object:
        try:
            return self.get_json_body()
        except UnicodeDecodeError:  # JupyterHub 5 decodes the body outside its error handling
            raise web.HTTPError(400, "Invalid JSON in body of request") from None


class SchemaHandler(AboutAServer):
    """Serves the options that are on offer to a server's owner, as a JSON Schema."""

    _questions = Questions()

    @needs_scope("servers")  # type: ignore[untyped-decorator, unused-ignore]
    async def get(self, user_name: str, server_name: str) -> None:
        """Send the schema."""
        async with counted(self._questions, user_name):
            offered = await self.accelerators(user_name, server_name)
            entitlement = await offered.of(server_name).policing.entitlement()
            self.answer(in_schema(options.schema(entitlement.offers), offered.runtime.line))


# The streams that keep open forms current.

_STREAM_SCOPE = "servers"
_broadcasts: WeakKeyDictionary[Runtime, Broadcast] = WeakKeyDictionary()


def broadcast() -> Broadcast:
    """Return this hub's streams."""
    running = runtime.running()
    if running not in _broadcasts:
        _broadcasts[running] = Broadcast(running)
    return _broadcasts[running]


class StreamHandler(AboutAServer):
    """Sends the availability of each accelerator or profile whenever it changes."""

    _questions = Questions()
    _crowd = Crowd()
    _stream: Stream | None = None

    def get_content_type(self) -> str:
        """As the hub has it."""
        return "text/event-stream"

    @needs_scope(_STREAM_SCOPE)  # type: ignore[untyped-decorator, unused-ignore]
    async def get(self, user_name: str, server_name: str) -> None:
        """Send events until the client goes, or its time is over."""
        async with counted(self._questions, user_name):
            form = await self._form(user_name, server_name)
        rights = Rights(self, _STREAM_SCOPE, user_name, server_name)
        self._stream = stream = Stream(form, self._send, self._until(), rights.hold)
        try:
            with self._crowd.place(self._client(), stream.leave):
                self.set_header("Cache-Control", "no-store")
                self.set_header("X-Accel-Buffering", "no")
                last = await broadcast().follow(stream)
        except TooManyStreamsError:
            raise TooManyQuestions from None
        except asyncio.CancelledError:
            self.finish()  # the hub ends
            raise
        if last is None:
            self.detach().close()  # whatever the client hasn't read is dropped
        else:
            self.finish(last)

    def on_connection_close(self) -> None:
        """Note that the client is gone."""
        if self._stream is not None:
            self._stream.lose()

    async def _form(self, user_name: str, server_name: str) -> OpenForm:
        with _conflicts():
            form = await opened(self.sources(user_name, server_name), server_name)
        if form is None:
            raise web.HTTPError(404, "This hub offers no choices")
        return form

    def _send(self, event: bytes) -> "asyncio.Future[None]":
        self.write(event)
        sent: asyncio.Future[None] = self.flush()
        return sent

    def _client(self) -> object:
        """Return who asks: a user, or a service."""
        return type(self.current_user), self.current_user.name

    def _until(self) -> float:
        """Return until when a token of the client's is valid, by the monotonic clock."""
        token = self.get_token()
        expires = token.expires_at if token is not None else None
        if expires is None:
            return math.inf
        left: timedelta = expires.replace(tzinfo=UTC) - datetime.now(UTC)
        return time.monotonic() + left.total_seconds()


class WaitingHandler(Answering):
    """Serves how many servers wait in line; never whose."""

    async def get(self) -> None:
        """Send the numbers to everybody who has logged in, as the form does."""
        if self.current_user is None:
            raise web.HTTPError(403)
        running = runtime.running()
        waiting, offered = running.preflight.line, running.offers.accelerators
        each = {key: count for key, count in waiting.waiting().items() if key in offered}
        self.answer({"servers": len(waiting), "accelerators": each})


class StaticHandler(web.StaticFileHandler):
    """Serves the script and the style sheet, to everybody."""

    def set_extra_headers(self, path: str) -> None:
        """Let browsers keep a file whose URL names the current version; they revalidate others."""
        is_named = self.request.arguments.get("v") == [addresses.version(path).encode()]
        kept = "public, max-age=31536000, immutable" if is_named else "no-cache"
        self.set_header("Cache-Control", kept)
        self.set_header("X-Content-Type-Options", "nosniff")


_HANDLERS = (
    (addresses.STATES, StatesHandler),
    (addresses.STREAM, StreamHandler),
    (addresses.DECISION, DecisionHandler),
    (addresses.SCHEMA, SchemaHandler),
    (addresses.STOP, StopHandler),
    (addresses.WAITING, WaitingHandler),
    (addresses.FILES, StaticHandler, {"path": str(STATIC)}),
)


def serve(hub: Any) -> None:
    """Add our handlers to those of a `JupyterHub`, once."""
    if not addresses.is_served(hub):
        add_handlers(hub, _HANDLERS)

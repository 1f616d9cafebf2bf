"""The endpoint of the streams."""

import asyncio
import math
import time
from asyncio import Future
from datetime import UTC, datetime, timedelta
from weakref import WeakKeyDictionary

from jupyterhub.scopes import needs_scope
from tornado import web

from gpuspawner.compat.rights import Rights
from gpuspawner.runtime import Runtime, running
from gpuspawner.start.refusal import Refusal
from gpuspawner.web.base_handler import AboutAServer
from gpuspawner.web.rate_limits import Questions, TooManyQuestions, counted
from gpuspawner.web.stream.broadcast import Broadcast
from gpuspawner.web.stream.open_form import OpenForm, opened
from gpuspawner.web.stream.open_streams import Crowd, Stream, TooManyStreamsError

_SCOPE = "servers"
_broadcasts: WeakKeyDictionary[Runtime, Broadcast] = WeakKeyDictionary()


def broadcast() -> Broadcast:
    """Return this hub's streams."""
    runtime = running()
    if runtime not in _broadcasts:
        _broadcasts[runtime] = Broadcast(runtime)
    return _broadcasts[runtime]


class StreamHandler(AboutAServer):
    """Sends the availability of each accelerator or profile whenever it changes."""

    _questions = Questions()
    _crowd = Crowd()
    _stream: Stream | None = None

    def get_content_type(self) -> str:
        """As the hub has it."""
        return "text/event-stream"

    @needs_scope(_SCOPE)  # type: ignore[untyped-decorator, unused-ignore]
    async def get(self, user_name: str, server_name: str) -> None:
        """Send events until the client goes, or its time is over."""
        async with counted(self._questions, user_name):
            form = await self._form(user_name, server_name)
        rights = Rights(self, _SCOPE, user_name, server_name)
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
        try:
            form = await opened(self.sources(user_name, server_name), server_name)
        except Refusal as refusal:
            raise web.HTTPError(409, "%s", refusal.text) from None
        if form is None:
            raise web.HTTPError(404, "This hub offers no choices")
        return form

    def _send(self, event: bytes) -> "Future[None]":
        self.write(event)
        sent: Future[None] = self.flush()
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

"""The hub's handlers for what is asked by a page that is open, and by scripts of its owner.

Like the hub's own REST API they take a token, or the cookie of somebody who has logged in together
with the token against cross-site requests; and they demand the scope that starting the server
takes. They change nothing.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jupyterhub.apihandlers import APIHandler
from jupyterhub.scopes import needs_scope
from jupyterhub.user import User
from tornado import web

from gpuspawner.admission.slots import TooManyDryRunsError
from gpuspawner.form.addresses import version
from gpuspawner.spawn.accelerators import Accelerators
from gpuspawner.spawn.locale import set_locale
from gpuspawner.spawn.preview import preview
from gpuspawner.web.answers import decision, states
from gpuspawner.web.request_limits import Questions, TooManyQuestionsError

MOST_BYTES = 64 * 1024
"""Of a question; the options of a form are some hundred."""

RETRY_AFTER = 10
"""Seconds until whoever found no turn may ask again; an open form asks as often."""
PAUSE = 8.0
"""Seconds until that is said, so that a program that asks again at once takes little of the hub."""


class _TooManyQuestions(web.HTTPError):
    """Comes with the header that says when to ask again; the hub sends an error's headers."""

    def __init__(self) -> None:
        super().__init__(429, "Too many are asking right now")
        self.headers = {"Retry-After": str(RETRY_AFTER)}


@asynccontextmanager
async def _counted(questions: Questions, owner: str) -> AsyncIterator[None]:
    """Count a question about this owner's servers, as long as it is under way.

    Raises:
        HTTPError: 429: there are too many, of theirs or in all.
    """
    try:
        with questions.counted(owner):
            yield
    except (TooManyQuestionsError, TooManyDryRunsError):
        await asyncio.sleep(PAUSE)
        raise _TooManyQuestions from None


class _AboutAServer(APIHandler):  # type: ignore[misc]
    """Finds the server that is asked about."""

    def accelerators(self, user_name: str, server_name: str) -> Accelerators:
        """What is on offer for a server, or for the default one if this is still to be made.

        Raises:
            HTTPError: 404: there is no such user, or servers here have no accelerators to choose.
        """
        user = self._owner(user_name)
        if user is None:
            raise web.HTTPError(404, "No such user")
        spawner = user.spawners.get(server_name) or user.spawner
        accelerators: Accelerators | None = spawner.gates.accelerators
        if accelerators is None:
            raise web.HTTPError(404, "Servers are chosen by profile here")
        set_locale(spawner, self)
        return accelerators

    def _owner(self, user_name: str) -> User | None:
        """The user of this name. Most ask about their own servers, and have just been loaded."""
        asks = self.current_user
        is_owner = isinstance(asks, User) and asks.name == user_name
        return asks if is_owner else self.find_user(user_name)

    def answer(self, found: dict[str, object]) -> None:
        """Send what was found; it is of this moment."""
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(found))


class StatesHandler(_AboutAServer):
    """How it stands with each accelerator."""

    _questions = Questions()

    @needs_scope("servers")  # type: ignore[untyped-decorator, unused-ignore]
    async def get(self, user_name: str, server_name: str) -> None:
        """Tell it for the server's owner."""
        async with _counted(self._questions, user_name):
            self.answer(await states(self.accelerators(user_name, server_name)))


class DecisionHandler(_AboutAServer):
    """Whether options could start now."""

    _questions = Questions()

    @needs_scope("servers")  # type: ignore[untyped-decorator, unused-ignore]
    async def post(self, user_name: str, server_name: str) -> None:
        """Tell it for the server's owner, of the options that the body holds."""
        if len(self.request.body) > MOST_BYTES:
            raise web.HTTPError(413, "The options are too long")
        async with _counted(self._questions, user_name):
            accelerators, sent = self.accelerators(user_name, server_name), self._options()
            found, offers = await preview(accelerators, sent, server_name)
            self.answer(decision(found, offers))

    def _options(self) -> object:
        try:
            return self.get_json_body()
        except UnicodeDecodeError:  # JupyterHub 5 decodes before it looks for what is wrong
            raise web.HTTPError(400, "Invalid JSON in body of request") from None


class StaticHandler(web.StaticFileHandler):
    """The script and the style sheet, which everybody may see."""

    def set_extra_headers(self, path: str) -> None:
        """Have browsers keep the version that is named, and else ask whether there is another."""
        is_named = self.request.arguments.get("v") == [version(path).encode()]
        kept = "public, max-age=31536000, immutable" if is_named else "no-cache"
        self.set_header("Cache-Control", kept)
        self.set_header("X-Content-Type-Options", "nosniff")

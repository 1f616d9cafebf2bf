"""The base of the handlers that answer questions about one server."""

import json

from jupyterhub.apihandlers import APIHandler
from jupyterhub.user import User
from tornado import web

from gpuspawner.gates.accelerators import Accelerators
from gpuspawner.gates.sources import Sources
from gpuspawner.start.host import set_locale


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

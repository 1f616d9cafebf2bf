"""How JupyterHub reads the body of a REST start, before any spawner sees it."""

from __future__ import annotations

from collections.abc import Callable

from jupyterhub.apihandlers.users import UserServerAPIHandler
from jupyterhub.app import JupyterHub
from tornado.httputil import HTTPServerRequest


class _NoConnection:
    """The connection of a request whose answer nobody waits for."""

    def set_close_callback(self, callback: Callable[[], None] | None) -> None:
        """Ignore the callback: this connection is never closed."""


def rest_start(app: JupyterHub, body: bytes) -> UserServerAPIHandler:
    """Return the hub's handler for a REST start with this body."""
    request = HTTPServerRequest(
        "POST",
        f"{app.hub_prefix}api/users/mallory/server",
        body=body,
        connection=_NoConnection(),  # type: ignore[arg-type]
    )
    return UserServerAPIHandler(app.tornado_application, request)


def options_of(handler: UserServerAPIHandler) -> object:
    """Return the options that the hub passes to `User.spawn`, None for none.

    Raises:
        HTTPError: The hub itself refuses the body.
    """
    if hasattr(handler, "get_server_json_body"):  # JupyterHub 6
        return handler.get_server_json_body()["user_options"]
    return handler.get_json_body()

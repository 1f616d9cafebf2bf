"""What a JupyterHub makes of the body of a REST start, before any spawner sees it."""

from __future__ import annotations

from collections.abc import Callable

from jupyterhub.apihandlers.users import UserServerAPIHandler
from jupyterhub.app import JupyterHub
from tornado.httputil import HTTPServerRequest


class _NoConnection:
    """Nobody waits for the answer."""

    def set_close_callback(self, callback: Callable[[], None] | None) -> None:
        """Forget it: what isn't open isn't closed."""


def rest_start(app: JupyterHub, body: bytes) -> UserServerAPIHandler:
    """The handler that the hub makes for a REST start with this body."""
    request = HTTPServerRequest(
        "POST",
        f"{app.hub_prefix}api/users/mallory/server",
        body=body,
        connection=_NoConnection(),  # type: ignore[arg-type]
    )
    return UserServerAPIHandler(app.tornado_application, request)


def options_of(handler: UserServerAPIHandler) -> object:
    """The options that the hub hands to `User.spawn`, None for none.

    Raises:
        HTTPError: The hub itself refuses the body.
    """
    if hasattr(handler, "get_server_json_body"):  # JupyterHub 6
        return handler.get_server_json_body()["user_options"]
    return handler.get_json_body()

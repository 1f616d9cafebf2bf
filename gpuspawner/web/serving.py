"""Where it is served, and the hub's own list of handlers, to which ours are added."""

import hashlib
from functools import cache
from typing import Any
from urllib.parse import quote

from jupyterhub.app import JupyterHub

from gpuspawner.form import STATIC, Live
from gpuspawner.web.handlers import DecisionHandler, StatesHandler, StaticHandler

PREFIX = "gpuspawner"
_SERVER = r"(?P<user_name>[^/]+)/(?P<server_name>[^/]*)"
_HANDLERS = (
    (rf"/{PREFIX}/states/{_SERVER}", StatesHandler),
    (rf"/{PREFIX}/decision/{_SERVER}", DecisionHandler),
    (rf"/{PREFIX}/static/(.*)", StaticHandler, {"path": str(STATIC)}),
)


def serve(hub: Any) -> None:
    """Add our handlers to those of a hub, once.

    The hub makes its web application out of ``extra_handlers`` at some time of its start, before or
    after this. Both are filled in place: whoever sets that trait has the hub log a warning.
    """
    if _serves(hub):
        return
    hub.extra_handlers.extend(_HANDLERS)
    application = getattr(hub, "tornado_application", None)
    if application is not None:
        prefix = hub.hub_prefix.rstrip("/")
        ours = [(f"{prefix}{path}", *rest) for path, *rest in _HANDLERS]
        application.add_handlers(".*", ours)


def live(spawner: Any) -> Live | None:
    """Where a server's form finds what makes it live; None where the hub does not serve it."""
    if not JupyterHub.initialized() or not _serves(JupyterHub.instance()):
        return None
    base = f"{spawner.hub.base_url}{PREFIX}"
    server = f"{quote(spawner.user.name, safe='')}/{quote(spawner.name, safe='')}"
    return Live(
        style=f"{base}/static/form.css?v={_version('form.css')}",
        script=f"{base}/static/form.js?v={_version('form.js')}",
        states=f"{base}/states/{server}",
        decision=f"{base}/decision/{server}",
    )


def _serves(hub: Any) -> bool:
    return any(StatesHandler in entry for entry in hub.extra_handlers)


@cache
def _version(name: str) -> str:
    """Changes with the file, so that browsers may keep each version for good."""
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:16]

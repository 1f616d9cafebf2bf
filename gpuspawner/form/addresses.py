"""The addresses of the files and data that the hub serves for a form.

They are not with the handlers, whose import needs the whole hub: a spawner is imported without it.
"""

import hashlib
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

from traitlets.config import Application

from gpuspawner.compat.pages import has_handler, xsrf_token
from gpuspawner.form.view_model import STATIC, LiveAddresses

_PREFIX = "gpuspawner"

_SERVER = r"(?P<user_name>[^/]+)/(?P<server_name>[^/]*)"
STATES = rf"/{_PREFIX}/states/{_SERVER}"
STREAM = rf"/{_PREFIX}/stream/{_SERVER}"
DECISION = rf"/{_PREFIX}/decision/{_SERVER}"
SCHEMA = rf"/{_PREFIX}/schema/{_SERVER}"
STOP = rf"/{_PREFIX}/stop/{_SERVER}"
LINE = rf"/{_PREFIX}/line/{_SERVER}"
WAITING = rf"/{_PREFIX}/line"
USED = rf"/{_PREFIX}/use"
REPORT = rf"/{_PREFIX}/report"
KEEP = rf"/{_PREFIX}/keep/{_SERVER}"
GPUS = rf"/{_PREFIX}/gpus"
FIGURES = rf"{GPUS}/figures"
GPUS_STREAM = rf"{GPUS}/stream/{_SERVER}"
GPUS_STOP = rf"{GPUS}/stop/{_SERVER}"
CAPACITY = rf"{GPUS}/capacity"
FILES = rf"/{_PREFIX}/static/((?:form|gpus)\.css|(?:follow|form|profiles|line|gpus)\.js)"

USAGE = "gpuspawner-usage"
"""The id of the part of the form that says what policies leave."""


def is_served(hub: Any) -> bool:
    """Whether our handlers are among those that the configuration adds to the hub's own."""
    return has_handler(hub, STATES)


def live(spawner: Any, script: str = "form.js") -> LiveAddresses | None:
    """Return the addresses for a server's live form; None if the hub doesn't serve them.

    *script* keeps the page current: ``form.js``, ``profiles.js`` on a page of profiles, or
    ``line.js`` on that of somebody who waits in line.
    """
    if not Application.initialized() or not is_served(Application.instance()):
        return None
    hub = spawner.hub.base_url
    return LiveAddresses(
        style=static(hub, "form.css"),
        script=static(hub, script),
        states=_ours(spawner, "states"),
        decision=_ours(spawner, "decision"),
        stream=_ours(spawner, "stream"),
        follow=static(hub, "follow.js"),
    )


def static(base_url: str, name: str) -> str:
    """Return the address of the current version of a file."""
    return f"{base_url}{_PREFIX}/static/{name}?v={version(name)}"


def gpus(base_url: str) -> str:
    """Return the address of the page of GPUs."""
    return f"{base_url}{_PREFIX}/gpus"


def spawn(spawner: Any) -> str:
    """Return the address of the page where a server is started."""
    return _of_the_hub(spawner, "spawn").rstrip("/")


def stop(spawner: Any, server: str) -> str:
    """Return the address that stops another server of the owner, and comes back to this form.

    It has the token that the hub's pages require of a form; "" if no page draws the form.
    """
    token = xsrf_token(spawner)
    if not token or live(spawner) is None:
        return ""
    query = urlencode({"form": spawner.name, "_xsrf": token})
    return f"{spawner.hub.base_url}{_PREFIX}/stop/{path_of(spawner.user.name, server)}?{query}"


def line(spawner: Any) -> str:
    """Return the address of the page for somebody who waits in line; "" without our handlers."""
    return "" if live(spawner) is None else _ours(spawner, "line")


def keep(spawner: Any) -> str:
    """Return the address of the page on which the owner keeps a server whose GPUs aren't used."""
    return _ours(spawner, "keep")


def pending(spawner: Any) -> str:
    """Return the address of the hub's page of a start."""
    return _of_the_hub(spawner, "spawn-pending").rstrip("/")


def _ours(spawner: Any, page: str) -> str:
    return _of_the_hub(spawner, f"{_PREFIX}/{page}")


def _of_the_hub(spawner: Any, page: str) -> str:
    """Return the address of the page of a server."""
    return f"{spawner.hub.base_url}{page}/{path_of(spawner.user.name, spawner.name)}"


def path_of(owner: str, server: str) -> str:
    """Return the part of an address that names a server of the owner."""
    return f"{quote(owner, safe='')}/{quote(server, safe='')}"


@cache
def version(name: str) -> str:
    """Return a hash of the file, so that browsers may cache each version forever."""
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:16]

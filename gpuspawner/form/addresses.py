"""Where a server's form finds what the hub serves for it.

Apart from the handlers, whose import brings in the whole hub: a spawner is imported without one.
"""

import hashlib
from functools import cache
from typing import Any
from urllib.parse import quote

from traitlets.config import Application

from gpuspawner.compat.jupyterhub import has_handler
from gpuspawner.form.view_model import STATIC, Live

_PREFIX = "gpuspawner"

_SERVER = r"(?P<user_name>[^/]+)/(?P<server_name>[^/]*)"
STATES = rf"/{_PREFIX}/states/{_SERVER}"
DECISION = rf"/{_PREFIX}/decision/{_SERVER}"
FILES = rf"/{_PREFIX}/static/(form\.(?:css|js))"


def is_served(hub: Any) -> bool:
    """Whether the hub has our handlers among those that are added to its own."""
    return has_handler(hub, STATES)


def live(spawner: Any) -> Live | None:
    """Where a server's form finds what makes it live; None where the hub does not serve it."""
    if not Application.initialized() or not is_served(Application.instance()):
        return None
    base = f"{spawner.hub.base_url}{_PREFIX}"
    server = f"{quote(spawner.user.name, safe='')}/{quote(spawner.name, safe='')}"
    return Live(
        style=f"{base}/static/form.css?v={version('form.css')}",
        script=f"{base}/static/form.js?v={version('form.js')}",
        states=f"{base}/states/{server}",
        decision=f"{base}/decision/{server}",
    )


@cache
def version(name: str) -> str:
    """Changes with the file, so that browsers may keep each version for good."""
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:16]

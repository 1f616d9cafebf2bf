"""Where a server's form finds what the hub serves for it.

Apart from the handlers, whose import brings in the whole hub: a spawner is imported without one.
"""

import hashlib
from functools import cache
from typing import Any
from urllib.parse import quote

from gpuspawner.form import STATIC, Live

PREFIX = "gpuspawner"

_served = False


def announce() -> None:
    """Have forms refer to what this process serves from now on."""
    global _served  # noqa: PLW0603, there is one hub in a process
    _served = True


def live(spawner: Any) -> Live | None:
    """Where a server's form finds what makes it live; None where the hub does not serve it."""
    if not _served:
        return None
    base = f"{spawner.hub.base_url}{PREFIX}"
    server = f"{quote(spawner.user.name, safe='')}/{quote(spawner.name, safe='')}"
    return Live(
        style=f"{base}/static/form.css?v={_version('form.css')}",
        script=f"{base}/static/form.js?v={_version('form.js')}",
        states=f"{base}/states/{server}",
        decision=f"{base}/decision/{server}",
    )


@cache
def _version(name: str) -> str:
    """Changes with the file, so that browsers may keep each version for good."""
    return hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:16]

"""What jupyterhub-idle-culler 2 asks about each server: ``c.IdleCuller.cull_arbiter_hook``.

It runs in the culler's process and uses nothing but Python's own library. The culler's token needs
the scope ``custom:gpuspawner:read:use``.
"""

import json
import os
import time
from datetime import timedelta
from typing import Any
from urllib.request import Request, urlopen

_SECONDS_KEPT = 10.0
_PATIENCE = 10.0

_known: dict[str, dict[str, Any]] = {}
_asked_at = float("-inf")


def gives_back(inactive: timedelta, inactive_limit: float, server: dict[str, Any]) -> bool:
    """Whether the culler shall stop a server.

    A server whose GPUs are used stays, also without a browser. So does one that its owner keeps, or
    that nobody has looked at since the hub's start. One whose GPUs aren't used is stopped once its
    owner has been warned for long enough. Where nobody knows, and without a GPU, the culler's own
    rule by activity holds.

    Raises:
        OSError, ValueError: The hub doesn't answer; the culler logs that, and stops nothing.
    """
    known = _servers().get(server["url"])
    if known is not None and (known["stays"] or known["use"] == "used"):
        return False
    if known is None or known["use"] == "unknown" or known["stop"] is None:
        return inactive.total_seconds() >= inactive_limit
    return bool(known["stop"])


def _servers() -> dict[str, dict[str, Any]]:
    """Return what the hub knows, by the URLs of servers; it is asked every ten seconds at most."""
    global _known, _asked_at  # noqa: PLW0603, the culler asks about one server after the other
    if time.monotonic() - _asked_at >= _SECONDS_KEPT:
        base = os.environ["JUPYTERHUB_API_URL"].removesuffix("/api")
        token = os.environ["JUPYTERHUB_API_TOKEN"]
        request = Request(f"{base}/gpuspawner/use", headers={"Authorization": f"token {token}"})  # noqa: S310, the hub's own address
        with urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310
            _known = json.load(answer)["servers"]
        _asked_at = time.monotonic()
    return _known

"""JupyterHub 5's count of failed starts, which stops the hub at ``consecutive_failure_limit``.

Read in ``jupyterhub/handlers/base.py`` (``spawn_single_user``) of 5.5.0.
"""

from asyncio import Future
from typing import Any
from weakref import WeakSet

from jupyterhub.spawner import Spawner

from gpuspawner.compat.jupyterhub import COUNTS_REFUSALS

_forgiven: WeakSet[Future[Any]] = WeakSet()
"""The starts whose failure isn't counted."""


def forgive(spawner: Spawner) -> None:
    """Keep JupyterHub 5 from counting the start's failure.

    The hub counts in a callback of ``_spawn_future``, compares with the limit on the spawner, and
    resets the count at any success. A limit of 0 keeps that callback from stopping the hub; ours
    runs directly after it, so the count is never seen too high. A start may be refused twice, as
    one that waits in line again, but the hub counts it once.
    """
    future, handler = spawner._spawn_future, spawner.handler
    if not COUNTS_REFUSALS or handler is None or future is None or future.done():
        return  # JupyterHub doesn't count a start that is refused before it begins
    if future in _forgiven:
        return
    _forgiven.add(future)
    limit = spawner.consecutive_failure_limit
    settings = handler.settings

    def take_back(_: object) -> None:
        spawner.consecutive_failure_limit = limit
        settings["failure_count"] = max(0, settings.get("failure_count", 0) - 1)

    spawner.consecutive_failure_limit = 0
    future.add_done_callback(take_back)

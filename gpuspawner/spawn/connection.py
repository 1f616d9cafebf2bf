"""A hub that can't reach the cluster for a while, which KubeSpawner does not bear by itself."""

import asyncio
from collections.abc import Callable
from typing import Any

from gpuspawner.admission.dry_run import Admission, Answer
from gpuspawner.compat import kubespawner
from gpuspawner.compat.kubespawner import Stock
from gpuspawner.kube.manifest import Manifest
from gpuspawner.spawn.host import Host


def make(spawner: Host, init: Callable[[], None]) -> None:
    """Make the spawner, with or without a cluster: every page of a person needs one."""
    try:
        init()
    except Exception as error:
        # This is the last thing that KubeSpawner's own does.
        if not kubespawner.is_of_configuration(error):
            raise
        spawner.api = None


async def poll(spawner: Host, stock: Stock) -> int | None:
    """Poll as KubeSpawner does; without a configuration there is nothing that could run."""
    return await stock.poll() if kubespawner.connect(spawner) else 1


class IfConnected:
    """Admission that is asked only if there is a configuration; the view logs that there is none.

    Args:
        spawner: Whose client is made on the way.
        admission: Who is asked.
    """

    def __init__(self, spawner: Host, admission: Admission) -> None:
        self._spawner = spawner
        self._admission = admission

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """As `Admission`."""
        if not kubespawner.connect(self._spawner):
            return None
        return await self._admission.admit(namespace, pod)


async def start_reflector(stock: Stock, kind: str, *args: Any, **kwargs: Any) -> Any:
    """Start a reflector of KubeSpawner's, and drop it if its first list fails.

    KubeSpawner keeps it, and every later start then waits for news that never come, until the hub
    is restarted. All starts wait for one future; a start that is cancelled meanwhile would cancel
    it for all of them.
    """
    try:
        return await asyncio.shield(stock.start_reflector(kind, *args, **kwargs))
    except Exception:
        stock.drop_reflector(kind)
        raise

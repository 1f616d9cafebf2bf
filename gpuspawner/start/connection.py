"""Keep KubeSpawner working while the hub can't reach the cluster."""

import asyncio
from collections.abc import Callable
from typing import Any

from gpuspawner.compat import kubespawner
from gpuspawner.compat.reflecting import OnGone, telling
from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.dry_runs import Admission, Answer, DryRuns
from gpuspawner.start.host import Host


def make(spawner: Host, init: Callable[[], None]) -> None:
    """Initialize the spawner even without a cluster: every page of a user needs one."""
    try:
        init()
    except Exception as error:
        # KubeSpawner's __init__ loads the configuration last, so all else is set up.
        if not kubespawner.is_of_configuration(error):
            raise
        spawner.api = None


async def poll(spawner: Host) -> int | None:
    """Poll as KubeSpawner does; without a connection, report that nothing runs."""
    if not kubespawner.connect(spawner):
        return 1
    status: int | None = await spawner.gpuspawner_stock.kubespawner.poll()
    return status


class IfConnected:
    """Admission that gives no answer without a Kubernetes configuration; the view logs that.

    With one, the spawner gets its Kubernetes client if it has none yet.
    """

    def __init__(self, spawner: Host, admission: Admission) -> None:
        self._spawner = spawner
        self._admission = admission

    async def admit(self, namespace: str, pod: Manifest) -> Answer:
        """As `Admission`."""
        if not kubespawner.connect(self._spawner):
            return None
        return await self._admission.admit(namespace, pod)


def admission(spawner: Host, dry_runs: DryRuns) -> IfConnected:
    """Return the admission that the owner's starts ask."""
    return IfConnected(spawner, dry_runs.for_start(spawner.user.name))


async def start_reflector(
    stock: kubespawner.Stock, kind: str, gone: OnGone, reflector_class: Any, **kwargs: Any
) -> Any:
    """Start one of KubeSpawner's reflectors, and drop it if its first list fails.

    A reflector of pods calls *gone* with the last version of each one that is gone.

    KubeSpawner keeps the failed reflector, and every later start would wait for its events. All
    starts wait for one future, so it is shielded: one cancelled start must not cancel the others.
    """
    before = stock.reflector(kind)
    try:  # each start asks; only the first one makes a reflector
        if kind == "pods" and (kwargs.get("replace") or not _works(before)):
            reflector_class = telling(reflector_class, gone)
        return await asyncio.shield(stock.start_reflector(kind, reflector_class, **kwargs))
    except Exception:
        stock.drop_reflector(kind, before)
        raise


def _works(reflector: Any) -> bool:
    """Whether KubeSpawner will not replace a reflector: it has listed, or is about to."""
    if reflector is None:
        return False
    first: asyncio.Future[object] = reflector.first_load_future
    return not first.done() or (not first.cancelled() and first.exception() is None)

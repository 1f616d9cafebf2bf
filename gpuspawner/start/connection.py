"""Keep KubeSpawner working while the hub can't reach the cluster."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from gpuspawner.compat import jupyterhub, kubespawner
from gpuspawner.compat.reflecting import OnGone, lasting, telling, works
from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.dry_runs import Admission, Answer, DryRuns
from gpuspawner.start.host import Host


def make(spawner: Host, init: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Initialize the spawner even without a cluster: every page of a user needs one.

    *init* is the next class's ``__init__``. If that is the administrator's, its rest wouldn't run,
    and a server's start, poll or stop could miss what it sets. So this raises, as KubeSpawner does,
    unless no server is ever started, as in a command.
    """
    try:
        init(*args, **kwargs)
    except Exception as error:
        if not kubespawner.is_of_configuration(error):
            raise
        # KubeSpawner's __init__ loads the configuration last, so all else of it is set up.
        if not kubespawner.is_its_init(init) and not jupyterhub.is_imagined(spawner):
            raise
        spawner.api = None


async def poll(spawner: Host) -> int | None:
    """Poll as KubeSpawner does; without a connection, a server that ran goes on until its stop.

    KubeSpawner can't stop it then, and would keep a client that leads nowhere.
    """
    if not kubespawner.connect(spawner):
        return None if jupyterhub.may_run(spawner) else 1
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
    starts wait for one future, so it is shielded: one cancelled start must not cancel the others,
    and a list whose starts are all cancelled can still fail.

    Raises:
        ConnectionError, TimeoutError: The list of another start, which this one waited for, failed.
    """
    return await asyncio.shield(_start_reflector(stock, kind, gone, reflector_class, **kwargs))


async def _start_reflector(
    stock: kubespawner.Stock, kind: str, gone: OnGone, reflector_class: Any, **kwargs: Any
) -> Any:
    before = stock.reflector(kind)
    is_new = before is not None and not before.first_load_future.done()
    if is_new or (works(before) and not kwargs.get("replace")):
        return await _of_another(stock, kind, reflector_class, **{**kwargs, "replace": False})
    makes_lasting = partial(telling, gone=gone) if kind == "pods" else lasting
    try:
        return await stock.start_reflector(kind, makes_lasting(reflector_class), **kwargs)
    except Exception:
        stock.drop_reflector(kind, before)
        raise


async def _of_another(stock: kubespawner.Stock, kind: str, *args: Any, **kwargs: Any) -> Any:
    """Return the reflector that another start has made, or the one before it if that failed."""
    try:
        return await stock.start_reflector(kind, *args, **kwargs)
    except Exception as error:
        if works(kept := stock.reflector(kind)):
            return kept
        # The pages of each start write into its error: two starts must not share one.
        its_own = TimeoutError if isinstance(error, TimeoutError) else ConnectionError
        raise its_own(f"KubeSpawner couldn't list the {kind}: {error}") from error

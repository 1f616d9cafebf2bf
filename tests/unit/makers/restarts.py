"""A spawner whose state the hub stores, and makes anew after its own restart."""

from collections.abc import Callable
from typing import Any

from jupyterhub import orm
from jupyterhub.utils import utcnow

from gpuspawner import GPUSpawner
from gpuspawner.launch.server_state import last_of
from gpuspawner.troubles.trouble import Kind
from tests.unit.makers.hub_database import HubDatabase
from tests.unit.makers.hubs import StillHub

NODE = ("Node", {"metadata": {"name": "gpu-0"}, "status": {"allocatable": {"cpu": "8"}}})


def restarting(hub: StillHub, database: HubDatabase | None = None) -> Callable[..., GPUSpawner]:
    """Return a function that makes alice's spawner, as the hub does after its own restart."""
    row = orm.Spawner(name="", user=(database := database or HubDatabase()).user("alice"))
    database.session.add(row)
    database.session.commit()

    def made(*, runs: bool = False, begun: bool = True, **traits: Any) -> GPUSpawner:
        row.server = orm.Server() if runs else None
        row.started = utcnow(with_tz=False) if runs and begun else None
        database.session.commit()
        spawner = hub.spawner(**traits)
        spawner.orm_spawner = row
        spawner.load_state(row.state or {})
        set_pod(spawner, None)
        return spawner

    return made


def set_pod(spawner: GPUSpawner, pod: dict[str, Any] | None) -> None:
    stock: Any = spawner.gpuspawner_stock
    stock.known_pod = lambda: pod


def pod(reason: str = "", **metadata: object) -> dict[str, Any]:
    """Return alice's pod; with a reason, Kubernetes is about to delete it."""
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    return {
        "metadata": {"name": "jupyter-alice", "namespace": "default", "uid": "1", **metadata},
        "spec": {"nodeName": "gpu-0"},
        "status": {"phase": "Running", "conditions": [disrupted] if reason else []},
    }


async def begin(spawner: GPUSpawner) -> None:
    """Do what the hub does when a start begins."""
    row: Any = spawner.orm_spawner
    spawner._start_pending, row.started = True, None
    await spawner.run_auth_state_hook(None)
    row.started = utcnow(with_tz=False)


def stop(spawner: GPUSpawner) -> None:
    """Do what the hub does at the end of a stop."""
    spawner.clear_state()
    row: Any = spawner.orm_spawner
    row.state, row.server = spawner.get_state(), None


def kind(spawner: GPUSpawner) -> Kind | None:
    """Return how the server ended by what the hub has stored."""
    row: Any = spawner.orm_spawner
    ending = last_of(row.state)
    return ending.kind if ending else None


def stopped(spawner: GPUSpawner) -> Kind | None:
    """Do what the hub does at the end of a stop, and return how the server ended."""
    stop(spawner)
    return kind(spawner)

"""Runs many spawns with faults and counts what they leave: ``python -m tests.race.soak [SPAWNS]``.

The spawners, the API server, the scheduler and the view are real; the hub is simulated. One process
calls the spawners as jupyterhub.user.User.spawn and stop do, without JupyterHub's database, proxy
and pages, which would take most of the time.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jupyterhub import orm
from kubernetes_asyncio.config import kube_config
from traitlets.config import Config

from gpuspawner import GPUSpawner, runtime
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.start.refusal import Refusal
from localcluster import LocalCluster
from localcluster.client import ApiError
from localcluster.ports import free_ports
from tests.race.stage import Result, nodes, pod_asking_for, reporting_cluster
from tests.servers.single_user import serving_every_pod

NAMESPACE = "soak"
PEOPLE = 20
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"

FATES = {
    "served": 40,
    "hook fails": 10,
    "pod not accepted": 10,
    "cancelled": 15,
    "timed out": 10,
    "older pod there": 5,
    "pod deleted by others": 10,
}


async def soak(running: LocalCluster, spawns: int, dice: random.Random, port: int) -> Result:
    """Start and stop servers for several users at once, with every fault.

    The result counts how many starts ended how: their fate, and the exception's class.
    """
    hub, result, left = Hub(running, dice, port), Result(), iter(range(spawns))

    async def person(name: str) -> None:
        for number in left:
            if number and number % max(1, spawns // 3) == 0:
                await hub.restart()
            if number % max(1, spawns // 10) == 0:
                _print_memory(number)
            result.counts[await hub.visit(name)] += 1

    await asyncio.gather(*(person(f"p{i}") for i in range(PEOPLE)))
    result.wrong += await _left(running, hub.reservations)
    _print_memory(spawns)
    await hub.restart()
    await GPUSpawner._stop_all_reflectors()
    return result


class Hub:
    """A simulated hub: what JupyterHub does with its spawners.

    Args:
        running: The cluster.
        dice: Decides the fate of each start.
        port: Where the servers listen.
    """

    def __init__(self, running: LocalCluster, dice: random.Random, port: int) -> None:
        self._api = running.api
        self._dice = dice
        self._config = Config()
        c = self._config.GPUSpawner
        c.accelerators = {"gpu": {"counts": [1, 2, 4], "node_selector": {"gpu": "yes"}}}
        c.namespace = NAMESPACE
        c.delete_grace_period = 0
        c.port = port
        c.events_enabled = False

    @property
    def reservations(self) -> Reservations:
        """The reservations of the current runtime, which `restart` replaces."""
        return runtime.current(self._spawner("nobody", "served")).preflight.reservations

    async def visit(self, name: str) -> str:
        """Start a server and stop it again; return the start's fate and outcome."""
        [fate] = self._dice.choices(list(FATES), list(FATES.values()))
        spawner = self._spawner(name, fate)
        spawner.user_options = {"accelerator": "gpu", "gpus": self._dice.choice([1, 1, 2, 4])}
        if fate == "older pod there":
            older = pod_asking_for(1, spawner.pod_name)
            older["metadata"]["labels"] = {"component": "singleuser-server"}
            with suppress(ApiError):
                await asyncio.to_thread(self._api.create, _PODS, older)
        starting = asyncio.ensure_future(_spawn(spawner))
        outcome = "started"
        try:
            if fate == "cancelled":
                await asyncio.sleep(self._dice.uniform(0, 0.3))
                starting.cancel()
            elif fate == "pod deleted by others":
                await self._delete_when_there(spawner.pod_name, starting)
            await starting
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001, as the hub does
            outcome = error.slug if isinstance(error, Refusal) else type(error).__name__
        await _stop(spawner)
        return f"{fate}: {outcome}"

    async def restart(self) -> None:
        """Forget everything that is only in the hub's memory."""
        old, runtime._runtime = runtime._runtime, None
        if old is not None:
            await old.view.stop()

    def _spawner(self, name: str, fate: str) -> GPUSpawner:
        url, api = f"/user/{name}/", "http://127.0.0.1/hub/api"
        spawner = GPUSpawner(
            config=self._config,
            user=SimpleNamespace(
                name=name, id=name, url=url, groups=[], server=None, escaped_name=name
            ),
            hub=SimpleNamespace(public_host="", url="/hub/", base_url="/hub/", api_url=api),
            orm_spawner=orm.Spawner(name="", user_options={}),
            api_token="x",
            oauth_client_id="x",
        )
        if fate == "hook fails":
            spawner.pre_spawn_hook = _fail
        elif fate == "pod not accepted":
            spawner.modify_pod_hook = _spoil
        elif fate == "timed out":
            spawner.start_timeout = self._dice.choice([0, 1])
        elif fate == "pod deleted by others":
            spawner.start_timeout = 3  # KubeSpawner does not notice that the pod is gone
        return spawner

    async def _delete_when_there(self, name: str, starting: asyncio.Future[None]) -> None:
        while not starting.done():
            with suppress(ApiError):
                await asyncio.to_thread(self._api.delete, f"{_PODS}/{name}", 0)
                return
            await asyncio.sleep(0.02)


async def _spawn(spawner: GPUSpawner) -> None:
    """As `User.spawn`."""
    admitted = spawner.run_pre_spawn_hook()
    if admitted is not None:
        await admitted
    await asyncio.wait_for(spawner.start(), spawner.start_timeout)


async def _stop(spawner: GPUSpawner) -> None:
    """As `User.stop`; if it takes longer than a start may, `User.spawn` only logs that.

    KubeSpawner waits for the pod's end as long as a start may take, which is 0 or 1 s here for
    some. The pod is being deleted then, and the next start may still find it.
    """
    try:
        if await spawner.poll() is None:
            with suppress(TimeoutError):
                await spawner.stop()
    finally:
        spawner.clear_state()


def _fail(_spawner: object) -> None:
    raise RuntimeError("the hook's own failure")


def _spoil(_spawner: object, pod: Any) -> Any:
    pod.spec.restart_policy = "Sometimes"
    return pod


async def _left(running: LocalCluster, reservations: Reservations) -> list[str]:
    """Wait until no pod and no reservation is left, for at most 60 s; return what is."""
    for _ in range(600):
        pods = await asyncio.to_thread(running.api.items, _PODS)
        if not pods and not len(reservations):
            return []
        await asyncio.sleep(0.1)
    return [f"{len(reservations)} reservations and {len(pods)} pods are left"]


def _print_memory(number: int) -> None:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    megabytes = pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    print(f"{number} spawns: {megabytes:.0f} MB resident", flush=True)


def main() -> int:
    """Run the soak at full size; return 1 if anything is left."""
    spawns = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    logging.disable(logging.CRITICAL)
    with (
        tempfile.TemporaryDirectory() as folder,
        reporting_cluster(Path(folder), NAMESPACE, nodes()) as running,
    ):
        # kube_config read the variable KUBECONFIG when it was imported.
        kube_config.KUBE_CONFIG_DEFAULT_LOCATION = str(running.kubeconfig)
        [port] = free_ports(1)
        with serving_every_pod(port):
            result = asyncio.run(soak(running, spawns, random.Random(seed), port))
    print(result)
    return int(bool(result.wrong))


if __name__ == "__main__":
    sys.exit(main())

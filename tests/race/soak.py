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
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jupyterhub import orm
from kubernetes_asyncio.config import kube_config
from traitlets.config import Config

from gpuspawner import GPUSpawner, runtime
from gpuspawner.preflight.reservations import Reservations
from gpuspawner.spawn.refusal import Refusal
from localcluster import LocalCluster
from localcluster.client import ApiError
from localcluster.ports import free_ports
from tests.race.proxied import reporting_cluster
from tests.race.stage import GPU, nodes
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


@dataclass
class Outcome:
    """What is left after all spawns.

    Attributes:
        ends: How many starts ended how: their fate, and the exception's class.
        reservations: Reservations that are left.
        pods: Pods that are left.
        memory: Resident memory of the process in MB, after each tenth of the spawns.
        seconds: How long it took.
    """

    ends: Counter[str] = field(default_factory=Counter)
    reservations: int = 0
    pods: int = 0
    memory: list[float] = field(default_factory=list)
    seconds: float = 0.0


async def soak(running: LocalCluster, spawns: int, seed: int, port: int) -> Outcome:
    """Start and stop servers for several users at once, with every fault."""
    played = Hub(running, random.Random(seed), port)
    outcome, left, began = Outcome(), iter(range(spawns)), time.monotonic()

    async def person(name: str) -> None:
        for number in left:
            if number and number % max(1, spawns // 3) == 0:
                await played.restart()
            if number % max(1, spawns // 10) == 0:
                gc.collect()
                outcome.memory.append(_resident())
            outcome.ends[await played.visit(name)] += 1

    await asyncio.gather(*(person(f"p{i}") for i in range(PEOPLE)))
    outcome.seconds = time.monotonic() - began
    await _until_none(running, played.reservations)
    outcome.reservations = len(played.reservations)
    outcome.pods = len(running.api.items(_PODS))
    gc.collect()
    outcome.memory.append(_resident())
    await played.close()
    return outcome


class Hub:
    """A simulated hub: what JupyterHub does with its spawners.

    Args:
        running: The cluster.
        dice: Decides the fate of each start.
        port: Where the servers listen.
    """

    def __init__(self, running: LocalCluster, dice: random.Random, port: int) -> None:
        self._running = running
        self._dice = dice
        self._config = Config()
        self._config.GPUSpawner.accelerators = {
            "gpu": {"counts": [1, 2, 4], "node_selector": {"gpu": "yes"}}
        }
        self._config.GPUSpawner.namespace = NAMESPACE
        self._config.GPUSpawner.delete_grace_period = 0
        self._config.GPUSpawner.port = port
        self._config.GPUSpawner.events_enabled = False
        self._free = asyncio.Condition()

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
            await self._leave_a_pod(spawner.pod_name)
        starting = asyncio.ensure_future(self._spawn(spawner))
        try:
            if fate == "cancelled":
                await asyncio.sleep(self._dice.uniform(0, 0.3))
                starting.cancel()
            elif fate == "pod deleted by others":
                await self._delete_when_there(spawner.pod_name, starting)
            await starting
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001, as the hub does
            await self._stop(spawner)
            return f"{fate}: {error.slug if isinstance(error, Refusal) else type(error).__name__}"
        await self._stop(spawner)
        return f"{fate}: started"

    async def _spawn(self, spawner: GPUSpawner) -> None:
        """As `User.spawn`."""
        admitted = spawner.run_pre_spawn_hook()
        if admitted is not None:
            await admitted
        await asyncio.wait_for(spawner.start(), spawner.start_timeout)

    async def _stop(self, spawner: GPUSpawner) -> None:
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

    async def restart(self) -> None:
        """Forget everything that is only in the hub's memory."""
        old, runtime._runtime = runtime._runtime, None
        if old is not None:
            await old.view.stop()

    async def close(self) -> None:
        await self.restart()
        await GPUSpawner._stop_all_reflectors()

    def _spawner(self, name: str, fate: str) -> GPUSpawner:
        user = SimpleNamespace(
            name=name, id=name, url=f"/user/{name}/", groups=[], server=None, escaped_name=name
        )
        theirs = SimpleNamespace(
            public_host="", url="/hub/", base_url="/hub/", api_url="http://127.0.0.1/hub/api"
        )
        spawner = GPUSpawner(
            config=self._config,
            user=user,
            hub=theirs,
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

    async def _leave_a_pod(self, name: str) -> None:
        asked = {"limits": {GPU: "1"}}
        labels = {"component": "singleuser-server"}
        spec = {"containers": [{"name": "notebook", "image": "x", "resources": asked}]}
        body = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        with suppress(ApiError):
            await asyncio.to_thread(self._running.api.create, _PODS, body)

    async def _delete_when_there(self, name: str, starting: asyncio.Future[None]) -> None:
        while not starting.done():
            with suppress(ApiError):
                await asyncio.to_thread(self._running.api.delete, f"{_PODS}/{name}", 0)
                return
            await asyncio.sleep(0.02)


def _fail(_spawner: object) -> None:
    raise RuntimeError("the hook's own failure")


def _spoil(_spawner: object, pod: Any) -> Any:
    pod.spec.restart_policy = "Sometimes"
    return pod


async def _until_none(running: LocalCluster, reservations: Reservations) -> None:
    """Wait until no pod and no reservation is left, for at most 60 s."""
    with suppress(TimeoutError):
        async with asyncio.timeout(60):
            while len(reservations) or bool(await asyncio.to_thread(running.api.items, _PODS)):  # noqa: ASYNC110
                await asyncio.sleep(0.1)


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> int:
    """Run the soak at full size; return 1 if anything is left."""
    spawns = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = random.randrange(2**32)
    logging.disable(logging.CRITICAL)
    with (
        tempfile.TemporaryDirectory() as folder,
        reporting_cluster(Path(folder), NAMESPACE, nodes()) as running,
    ):
        # kube_config read the variable KUBECONFIG when it was imported.
        kube_config.KUBE_CONFIG_DEFAULT_LOCATION = str(running.kubeconfig)
        [port] = free_ports(1)
        with serving_every_pod(port):
            outcome = asyncio.run(soak(running, spawns, seed, port))
    for end, count in outcome.ends.most_common():
        print(f"{count:6d}  {end}")
    print(f"{spawns} spawns in {outcome.seconds:.0f} s (seed {seed})")
    print("resident MB, every tenth:", " ".join(f"{value:.0f}" for value in outcome.memory))
    print(f"left: {outcome.reservations} reservations, {outcome.pods} pods")
    return int(outcome.reservations > 0 or outcome.pods > 0)


if __name__ == "__main__":
    sys.exit(main())

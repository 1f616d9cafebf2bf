"""A pytest plugin that puts an administrator's code in front of KubeSpawner's tests.

``-p tests.stock.hooked``, after `tests.stock.substituted` for GPUSpawner. `KIND`, an environment
variable, names the class in `CLASSES`. As in a hub, ``pre_spawn_hook`` runs before each start.
"""

import asyncio
import os
from typing import Any
from zlib import crc32

import kubespawner
from jupyterhub.utils import maybe_future
from kubespawner.spawner import KubeSpawner
from traitlets import default

from gpuspawner import GPUSpawner
from gpuspawner.spawner import in_front_of
from tests.stock.looking import look

KIND = "GPUSPAWNER_HOOKS"
_FIRST = "renamed-"


class Looking(KubeSpawner):  # type: ignore[misc]
    """Looks at each pod, and gives it another name once it may start."""

    made: Any = None

    async def get_pod_manifest(self) -> Any:
        """Keep what KubeSpawner makes."""
        self.made = await super().get_pod_manifest()
        return self.made

    async def _make_create_pod_request(self, pod: Any, request_timeout: float) -> Any:
        look(self.made, pod)
        return await super()._make_create_pod_request(pod, request_timeout)

    @default("modify_pod_hook")
    def _look(self) -> Any:
        def hook(spawner: Any, pod: Any) -> Any:
            look(spawner.made, pod)
            assert pod.to_str()
            return pod

        return hook

    @default("pre_spawn_hook")
    def _rename(self) -> Any:
        def hook(spawner: Any) -> None:
            spawner.pod_name = spawner.pod_name.removeprefix(_FIRST)

        return hook

    def start(self) -> Any:
        """Start as KubeSpawner does."""
        assert not self.pod_name.startswith(_FIRST)
        return super().start()


class Failing(KubeSpawner):  # type: ignore[misc]
    """Fails at one of the steps of a start, which the owner's name decides."""

    def fails_at(self, *steps: str) -> bool:
        """Whether it fails at one of these steps."""
        all_steps = ("hook", "changing", "created", "stopping", "address", "loading", "sending")
        return all_steps[crc32(str(self.user.name).encode()) % len(all_steps)] in steps

    @default("pre_spawn_hook")
    def _before(self) -> Any:
        def hook(spawner: Any) -> None:
            if spawner.fails_at("hook"):
                raise TimeoutError("The licences' server didn't answer.")

        return hook

    @default("modify_pod_hook")
    def _change(self) -> Any:
        async def hook(spawner: Any, pod: Any) -> Any:
            if spawner.fails_at("changing"):
                await asyncio.wait_for(asyncio.sleep(60), 0.01)
            return pod

        return hook

    @default("after_pod_created_hook")
    def _created(self) -> Any:
        async def hook(spawner: Any, _: Any) -> None:
            if spawner.fails_at("created"):
                raise RuntimeError("Your course has ended.")
            if spawner.fails_at("stopping"):
                await spawner.stop(now=True)
                await asyncio.sleep(2)
                raise ValueError("Your licence is in use.")

        return hook

    def _get_pod_url(self, pod: Any) -> Any:
        if self.fails_at("address"):
            raise LookupError("The gateway knows no such server.")
        return super()._get_pod_url(pod)

    async def load_user_options(self) -> None:
        """Load the chosen profile."""
        if self.fails_at("loading"):
            raise TimeoutError("The directory didn't answer.")
        await super().load_user_options()

    async def _make_create_pod_request(self, pod: Any, request_timeout: float) -> Any:
        if self.fails_at("sending"):
            raise ConnectionError("The ledger is away.")
        return await super()._make_create_pod_request(pod, request_timeout)


CLASSES = {"looking": Looking, "failing": Failing}


def _as_a_hub_starts(kind: type[Any]) -> type[Any]:
    class Started(kind):  # type: ignore[misc]
        def start(self) -> Any:
            return asyncio.ensure_future(self._start_after_the_hook())

        async def _start_after_the_hook(self) -> Any:
            if isinstance(self, Looking):
                self.pod_name = _FIRST + self.pod_name
            await maybe_future(self.run_pre_spawn_hook())
            return await super().start()

    return Started


theirs = CLASSES[os.environ[KIND]]
is_ours = kubespawner.KubeSpawner is GPUSpawner
kubespawner.KubeSpawner = _as_a_hub_starts(in_front_of(theirs) if is_ours else theirs)

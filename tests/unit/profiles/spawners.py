"""Spawners without a hub and without a cluster, with profiles of an administrator's."""

from __future__ import annotations

from typing import Any

from kubespawner import KubeSpawner
from traitlets.config import Config

from gpuspawner.outages import StandsOutages
from gpuspawner.preflight.admitted import AdmittedPreflight
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.profiles import ChoosesProfiles, Profiles
from gpuspawner.profiles.trial import listing, profile_list
from tests.unit.preflight.worlds import StillView


class StockSpawner(StandsOutages, KubeSpawner):  # type: ignore[misc]
    """KubeSpawner as it is, but for the cluster that is not there."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(_mock=True, config=Config({"KubeSpawner": traits}))


class ProfileSpawner(ChoosesProfiles, StockSpawner):
    """What profiles need of GPUSpawner."""

    language = "en"
    _underway: object = None

    async def dry_run(self, namespace: str, pod: dict[str, Any]) -> Any:
        """Nobody can tell what admission would make of a pod."""

    async def dry_run_for_page(self, namespace: str, pod: dict[str, Any]) -> Any:
        return await self.dry_run(namespace, pod)

    def new_claims(self) -> tuple[()]:
        return ()


async def profiles_of(spawner: ProfileSpawner, *objects: tuple[str, dict[str, object]]) -> Profiles:
    """The profiles before a cluster that has these objects."""
    return await profiles_in(StillView(*objects), spawner)


async def profiles_in(view: StillView, spawner: ProfileSpawner) -> Profiles:
    for kind in ("PriorityClass", "DeviceClass"):
        view.state.mark_known(kind)
    preflight = AdmittedPreflight(Preflight(view))
    listed = await profile_list(spawner, listing(spawner))
    return Profiles(spawner, listed, view, preflight)

"""The pod of a choice, and a spawner that is none the wiser."""

from __future__ import annotations

import copy
from typing import Any

from gpuspawner.preflight.ask import Ask
from gpuspawner.profiles.choosing import Chosen
from gpuspawner.profiles.trial import listing, profile_list, try_out
from gpuspawner.scheduling import ClusterState
from tests.unit.profiles.lists import CPU, CPU_PROFILE, GPU, GPU_PROFILE
from tests.unit.profiles.spawners import ProfileSpawner


async def _tried(spawner: ProfileSpawner, profile: Any = GPU_PROFILE, **options: object) -> Ask:
    chosen = Chosen(profile, {"profile": profile.slug, **options})
    listed = await profile_list(spawner, listing(spawner))
    return await try_out(spawner.copied(), listed, chosen, ClusterState().rules)


def _container(ask: Ask) -> dict[str, Any]:
    container: dict[str, Any] = ask.pod["spec"]["containers"][0]
    return container


async def test_the_pod_is_the_one_that_kubespawner_makes_of_the_choice() -> None:
    spawner = ProfileSpawner(profile_list=[CPU, GPU], extra_resource_limits={"example.com/a": "1"})

    ask = await _tried(spawner, gpus="two", **{"image--unlisted-choice": "quay.io/a:1"})

    real = spawner.copied()
    real.user_options = {"profile": "gpu", "gpus": "two", "image--unlisted-choice": "quay.io/a:1"}
    await real.load_user_options()
    assert ask.pod["spec"]["nodeSelector"] == (await real.get_pod_manifest()).spec.node_selector
    limits = {"example.com/a": "1", "nvidia.com/gpu": "2"}
    assert _container(ask)["resources"]["limits"] == limits
    assert _container(ask)["image"] == "quay.io/a:1"
    assert ask.grant.accelerator
    assert (ask.grant.accelerator.resource, ask.grant.gpus) == ("nvidia.com/gpu", 2)


async def test_the_spawner_and_the_configuration_stay_as_they_were() -> None:
    listed = [CPU, GPU]
    before = copy.deepcopy(listed)
    spawner = ProfileSpawner(
        profile_list=listed,
        extra_resource_limits={"example.com/a": "1"},
        node_selector={"disk": "fast"},
        environment={"A": "b"},
    )
    traits = {name: copy.copy(value) for name, value in spawner.trait_values(config=True).items()}

    await _tried(spawner, gpus="two", **{"image--unlisted-choice": "quay.io/a:1"})
    await _tried(spawner, gpus="one")

    assert spawner.trait_values(config=True) == traits
    assert listed == before


async def test_functions_are_given_a_copy_whatever_they_do_to_it() -> None:
    def limits(spawner: Any) -> dict[str, str]:
        spawner.environment["SEEN"] = spawner.user.name
        spawner.tolerations.append({"key": "gpu", "operator": "Exists"})
        return {"nvidia.com/gpu": "1"}

    gpu = {**GPU, "kubespawner_override": {"extra_resource_limits": limits}}
    spawner = ProfileSpawner(profile_list=[gpu], environment={"A": "b"}, tolerations=[])

    ask = await _tried(spawner)

    assert ask.grant.gpus == 1
    assert ask.pod["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert spawner.environment == {"A": "b"}
    assert spawner.tolerations == []


async def test_a_pod_that_cannot_be_made_yet_is_unknown() -> None:
    broken = {**GPU, "kubespawner_override": {"mem_limit": lambda spawner: spawner.course_size}}

    ask = await _tried(ProfileSpawner(profile_list=[broken]))

    assert ask.pod == {"spec": None}
    assert ask.grant.accelerator is None


async def test_a_profile_without_devices_asks_for_none() -> None:
    ask = await _tried(ProfileSpawner(profile_list=[CPU, GPU]), CPU_PROFILE)

    assert ask.grant.accelerator is None
    assert ask.pod["spec"]["containers"]


async def test_of_several_devices_the_gpu_is_what_is_told() -> None:
    both = {"extra_resource_limits": {"example.com/rdma": "1", "nvidia.com/mig-1g.5gb": "2"}}
    gpus_too = {"extra_resource_limits": {"example.com/rdma": "1", "amd.com/gpu": "2"}}

    rdma = await _tried(ProfileSpawner(profile_list=[{**GPU, "kubespawner_override": both}]))
    amd = await _tried(ProfileSpawner(profile_list=[{**GPU, "kubespawner_override": gpus_too}]))

    assert amd.grant.accelerator
    assert amd.grant.accelerator.display_name == "GPU"
    assert rdma.grant.accelerator
    assert rdma.grant.accelerator.resource == "example.com/rdma"


async def test_the_namespace_may_be_the_profile_s() -> None:
    elsewhere = {**GPU, "kubespawner_override": {"namespace": "research"}}

    assert (await _tried(ProfileSpawner(profile_list=[elsewhere]))).namespace == "research"

"""The pod of a choice, found without changing the spawner."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from gpuspawner import GPUSpawner
from gpuspawner.compat.kubespawner import complete_profiles
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.profiles.pod_of_choice import try_out
from gpuspawner.profiles.profile_list import read
from gpuspawner.profiles.profile_options import Chosen
from gpuspawner.scheduling import ClusterState
from tests.unit.makers.profile_lists import CPU, CPU_PROFILE, GPU, GPU_PROFILE

SpawnerWith = Callable[..., GPUSpawner]


@pytest.fixture
def spawner_with(hub_with) -> SpawnerWith:
    return hub_with().spawner


async def _tried(spawner: GPUSpawner, profile: Any = GPU_PROFILE, **options: object) -> Proposal:
    chosen = Chosen(profile, {"profile": profile.slug, **options})
    listed = complete_profiles(spawner, spawner.profile_list)
    return await try_out(spawner.gpuspawner_copy(), listed, chosen, ClusterState().rules)


def _container(proposal: Proposal) -> dict[str, Any]:
    container: dict[str, Any] = proposal.pod["spec"]["containers"][0]
    return container


async def test_the_pod_is_the_one_that_kubespawner_makes(spawner_with) -> None:
    spawner = spawner_with(profile_list=[CPU, GPU], extra_resource_limits={"example.com/a": "1"})

    proposal = await _tried(spawner, gpus="two", **{"image--unlisted-choice": "quay.io/a:1"})

    real = spawner.gpuspawner_copy()
    real.user_options = {"profile": "gpu", "gpus": "two", "image--unlisted-choice": "quay.io/a:1"}
    await real.load_user_options()
    assert (
        proposal.pod["spec"]["nodeSelector"] == (await real.get_pod_manifest()).spec.node_selector
    )
    limits = {"example.com/a": "1", "nvidia.com/gpu": "2"}
    assert _container(proposal)["resources"]["limits"] == limits
    assert _container(proposal)["image"] == "quay.io/a:1"
    assert proposal.grant.accelerator
    assert (proposal.grant.accelerator.resource, proposal.grant.gpus) == ("nvidia.com/gpu", 2)


@pytest.mark.each_python
async def test_the_spawner_and_the_configuration_stay_as_they_were(spawner_with) -> None:
    listed = [CPU, GPU]
    before = copy.deepcopy(listed)
    spawner = spawner_with(
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


async def test_functions_get_a_copy_that_they_may_change(spawner_with) -> None:
    def limits(spawner: Any) -> dict[str, str]:
        spawner.environment["SEEN"] = spawner.user.name
        spawner.tolerations.append({"key": "gpu", "operator": "Exists"})
        return {"nvidia.com/gpu": "1"}

    gpu = {**GPU, "kubespawner_override": {"extra_resource_limits": limits}}
    spawner = spawner_with(profile_list=[gpu], environment={"A": "b"}, tolerations=[])

    proposal = await _tried(spawner)

    assert proposal.grant.gpus == 1
    assert proposal.pod["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert spawner.environment == {"A": "b"}
    assert spawner.tolerations == []


async def test_a_pod_that_cannot_be_made_yet_is_unknown(spawner_with) -> None:
    broken = {**GPU, "kubespawner_override": {"mem_limit": lambda spawner: spawner.course_size}}

    proposal = await _tried(spawner_with(profile_list=[broken]))

    assert proposal.pod == {"spec": None}
    assert proposal.grant.accelerator is None


async def test_a_profile_without_devices_requests_none(spawner_with) -> None:
    proposal = await _tried(spawner_with(profile_list=[CPU, GPU]), CPU_PROFILE)

    assert proposal.grant.accelerator is None
    assert proposal.pod["spec"]["containers"]


async def test_a_gpu_comes_first_among_several_devices(spawner_with) -> None:
    both = {"extra_resource_limits": {"example.com/rdma": "1", "nvidia.com/mig-1g.5gb": "2"}}
    gpus_too = {"extra_resource_limits": {"example.com/rdma": "1", "amd.com/gpu": "2"}}

    rdma = await _tried(spawner_with(profile_list=[{**GPU, "kubespawner_override": both}]))
    amd = await _tried(spawner_with(profile_list=[{**GPU, "kubespawner_override": gpus_too}]))

    assert amd.grant.accelerator
    assert amd.grant.accelerator.display_name == "GPU"
    assert rdma.grant.accelerator
    assert rdma.grant.accelerator.resource == "example.com/rdma"


async def test_a_profile_may_set_the_namespace(spawner_with) -> None:
    elsewhere = {**GPU, "kubespawner_override": {"namespace": "research"}}

    assert (await _tried(spawner_with(profile_list=[elsewhere]))).namespace == "research"


GROWS = {"max_nodes": 3, "minutes": 8}


async def test_a_profile_without_a_gpu_may_declare_its_pool(spawner_with) -> None:
    large = {
        "display_name": "Large",
        "slug": "large",
        "kubespawner_override": {"node_selector": {"pool": "large"}},
        "scale_up": GROWS,
    }
    [profile] = read([large])
    spawner = spawner_with(profile_list=[large])

    pool = (await _tried(spawner, profile)).declared_pool

    assert (pool.scale_up.max_nodes, pool.node_selector, pool.resource) == (
        3,
        {"pool": "large"},
        "",
    )


async def test_without_a_selector_nobody_knows_which_nodes_are_the_pool(spawner_with) -> None:
    any_node = {"display_name": "Any", "slug": "any", "scale_up": GROWS}
    [profile] = read([any_node])

    proposal = await _tried(spawner_with(profile_list=[any_node]), profile)

    assert proposal.declared_pool is None


async def test_a_choice_may_declare_a_pool_of_its_own(spawner_with) -> None:
    def choice(kind: str, **more: Any) -> dict[str, Any]:
        override = {"node_selector": {"gpu": kind}}
        return {"display_name": kind, "kubespawner_override": override, **more}

    choices = {"t4": choice("t4", default=True), "a100": choice("a100", scale_up=GROWS)}
    listed = {
        "display_name": "GPU",
        "slug": "gpu",
        "profile_options": {"kind": {"display_name": "Kind", "choices": choices}},
    }
    [profile] = read([listed])
    spawner = spawner_with(profile_list=[listed])

    own = (await _tried(spawner, profile, kind="a100")).declared_pool
    none = (await _tried(spawner, profile, kind="t4")).declared_pool

    assert own.node_selector == {"gpu": "a100"}
    assert none is None

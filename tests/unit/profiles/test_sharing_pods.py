"""Pods made for one user and used for all whose pods are alike."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gpuspawner import GPUSpawner
from gpuspawner.cluster.background import Turn
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.profiles import page_availability, sharing
from gpuspawner.profiles.profile_options import Chosen
from tests.unit.makers.hubs import OF_ANN, StillHub, named
from tests.unit.makers.profile_clusters import TWO_GPUS, of, profiles_of
from tests.unit.makers.profile_lists import CPU, GPU

VOLUMES = {
    "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "claim-{username}"}}],
    "extra_labels": {"owner": "{username}"},
    "storage_pvc_ensure": True,
    "storage_capacity": "1Gi",
}
OWN = {"extra_pod_config": {"hostname": "{username}"}}
"""Pods that nobody can take for another user's before one is made."""
CHOICES = 4
"""The default profile, and the GPU profile with its defaults and two other choices."""


async def read(hub: StillHub, spawner: GPUSpawner, chosen: dict[str, object]) -> Proposal:
    profiles = profiles_of(spawner)
    listed = await profiles._list(spawner)
    profile = next(it for it in listed.profiles if it.slug == chosen["profile"])
    found = page_availability.Looking(
        spawner, listed, hub.runtime(spawner), await profiles.policing.entitlement(), Turn(1)
    )
    return await found.proposal(Chosen(profile, chosen))


HOME = {"name": "volume-{username}", "persistentVolumeClaim": {"claimName": "{username}"}}


@pytest.mark.parametrize(
    ("traits", "free"),
    [(lambda _: OWN, 3), (lambda name: {"volumes": [HOME], "namespace": f"of-{name}"}, 0)],
    ids=["in a field", "of volumes and namespaces, as with Zero to JupyterHub"],
)
async def test_later_users_whose_names_are_in_their_pods_cost_one_pod_each(
    hub_with, tried, traits, free
) -> None:
    hub = hub_with(TWO_GPUS)

    first = await profiles_of(of(hub, "ann", **traits("ann"))).form()
    assert len(tried) > 3
    tried.clear()
    second = await profiles_of(of(hub, "bob", **traits("bob"))).form()

    assert tried == ["bob"]
    assert first.count("2 of 2 free") == second.count("2 of 2 free") == free


async def test_choices_with_equal_pods_are_judged_once_on_later_pages_too(
    hub_with, monkeypatch
) -> None:
    judged: list[str] = []
    judge = page_availability.Looking._judge

    async def counted(self: Any, *rest: Any) -> Any:
        judged.append(self._spawner.user.name)
        return await judge(self, *rest)

    monkeypatch.setattr(page_availability.Looking, "_judge", counted)
    hub = hub_with(TWO_GPUS)
    for name in ("ann", "bob"):
        spawner = named(hub.spawner(profile_list=[GPU], **OWN), name)
        await profiles_of(spawner).form()

    assert judged == ["ann", "ann", "bob", "bob"]  # with one GPU and with two


async def test_the_sample_of_another_user_is_the_pod_that_kubespawner_makes(
    hub_with, tried
) -> None:
    hub, alone = hub_with(TWO_GPUS), hub_with(TWO_GPUS)
    two = {"profile": "gpu", "gpus": "two"}
    await read(hub, of(hub, "ann", **VOLUMES), two)

    shared = await read(hub, of(hub, "bob", **VOLUMES), two)
    tried.clear()
    own = await read(alone, of(alone, "bob", **VOLUMES), two)

    assert shared.decoded == own.decoded
    assert (shared.key, shared.grant, shared.new_claims) == (own.key, own.grant, own.new_claims)
    assert shared.decoded.spec.volumes[0].persistent_volume_claim.claim_name == "claim-bob"
    assert shared.decoded.metadata.labels["owner"] == "bob"


@pytest.mark.each_python
async def test_samples_hold_no_tokens(hub_with) -> None:
    hub = hub_with(TWO_GPUS)
    spawner = of(hub, "ann", environment={"TOKEN": "secret-7"})

    await profiles_of(spawner).form()

    kept = page_availability.known(hub.runtime(spawner))
    patterns = [it for held in kept.samples._kept.values() for it in held.patterns.values()]
    assert len(patterns) == CHOICES
    assert "secret-7" not in repr(patterns)


async def test_users_share_nothing_if_the_default_profile_hides_that_their_pods_differ(
    hub_with,
) -> None:
    """The hub may give more memory to the staff; only the default profile sets its own."""
    hub, small = hub_with(TWO_GPUS), {**CPU, "kubespawner_override": {"mem_guarantee": "1G"}}

    async def form(name: str, memory: str) -> str:
        spawner = hub.spawner(profile_list=[small, GPU], mem_guarantee=memory)
        return await profiles_of(named(spawner, name)).form()

    assert "Not available" in await form("ann", "100T")
    assert "2 of 2 free" in await form("bob", "1G")


async def test_users_share_nothing_if_the_default_profile_hides_that_their_names_are_in_pods(
    hub_with,
) -> None:
    """Each owner has a node of their own; only the default profile may go to all others, too."""
    hub, anywhere = hub_with(OF_ANN), {"extra_pod_config": {"nodeSelector": None}}
    own = {"nodeSelector": {"owner": "{username}"}}

    async def form(name: str) -> str:
        profiles = [{**CPU, "kubespawner_override": anywhere}, GPU]
        spawner = hub.spawner(profile_list=profiles, extra_pod_config=own)
        return await profiles_of(named(spawner, name)).form()

    assert "2 of 2 free" in await form("ann")
    assert "2 of 2 free" not in await form("bob")


async def test_a_claim_that_only_one_profile_has_is_never_another_user_s(hub_with) -> None:
    hub = hub_with(TWO_GPUS)
    scratch = {"name": "s", "persistentVolumeClaim": {"claimName": "scratch-{username}"}}
    gpu = {**GPU, "kubespawner_override": {**GPU["kubespawner_override"], "volumes": [scratch]}}

    for name in ("ann", "bob"):
        spawner = named(hub.spawner(profile_list=[CPU, gpu]), name)
        found = (await read(hub, spawner, {"profile": "gpu"})).decoded
        assert found.spec.volumes[0].persistent_volume_claim.claim_name == f"scratch-{name}"


class Theirs(GPUSpawner):
    async def get_pod_manifest(self) -> Any:
        made = await super().get_pod_manifest()
        if self.user.name == "bob" and "nvidia.com/gpu" in self.extra_resource_limits:
            made.spec.node_selector = {"gpu": "of another group"}
        return made


async def test_users_share_nothing_if_other_code_makes_the_pods(hub_with) -> None:
    hub = hub_with(TWO_GPUS)

    async def form(name: str) -> str:
        spawner = named(hub.spawner(Theirs, profile_list=[CPU, GPU]), name)
        return await profiles_of(spawner).form()

    assert "2 of 2 free" in await form("ann")
    assert "Not available" in await form("bob")


async def test_functions_are_asked_for_each_user_and_once_a_minute(hub_with) -> None:
    now = [0.0]
    hub, calls = hub_with(TWO_GPUS), []

    def limits(spawner: Any) -> dict[str, str]:
        calls.append(spawner.user.name)
        return {"nvidia.com/gpu": "2" if spawner.user.name == "ann" else "3"}

    gpu = {**GPU, "profile_options": {}, "kubespawner_override": {"extra_resource_limits": limits}}
    kept = sharing.Samples(clock=lambda: now[0])

    async def form(name: str) -> str:
        spawner = named(hub.spawner(profile_list=[CPU, gpu]), name)
        msgspec.structs.force_setattr(
            page_availability.known(hub.runtime(spawner)), "samples", kept
        )
        return await profiles_of(spawner).form()

    hub.admission.answer = lambda pod: pod
    assert "2 of 2 free" in await form("ann")
    assert "Not available" in await form("bob")
    before = len(calls)
    now[0] = 59.0
    await form("ann")
    assert len(calls) == before
    now[0] = 61.0
    await form("ann")
    assert calls[before:] == ["ann"]


async def test_a_list_that_changes_is_read_again(hub_with) -> None:
    hub = hub_with(TWO_GPUS)
    listed: list[Callable[..., Any] | dict[str, Any]] = [CPU, dict(GPU)]
    spawner = hub.spawner(profile_list=lambda _: listed)

    assert "One (Free: 2 of 2 free)" in await profiles_of(spawner).form()
    listed[1]["profile_options"] = {}
    assert "One" not in await profiles_of(spawner).form()

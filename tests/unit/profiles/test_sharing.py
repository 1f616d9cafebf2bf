"""What one page has found out, and the pods it has made, used for users whose pods are alike."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gpuspawner import GPUSpawner
from gpuspawner.cluster.background import Turn
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.profiles import page_availability, sharing
from gpuspawner.profiles.pod_of_choice import try_out
from gpuspawner.profiles.profile_options import Chosen
from gpuspawner.reservations.reservations import Reservations
from tests.unit.makers.hubs import OF_ANN, StillHub, named, tolerating
from tests.unit.makers.profile_clusters import TAINTED, TWO_GPUS, of, profiles_of
from tests.unit.makers.profile_lists import CPU, GPU
from tests.unit.makers.worlds import NAMESPACE, pod

FREE = ">Free<"
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


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the owner of each pod that KubeSpawner makes for a page."""
    owners: list[str] = []

    async def counted(spawner: Any, *rest: Any) -> Proposal:
        owners.append(spawner.user.name)
        return await try_out(spawner, *rest)

    monkeypatch.setattr(page_availability, "try_out", counted)
    return owners


async def form(hub: StillHub, name: str, **traits: Any) -> str:
    return await profiles_of(of(hub, name, **traits)).form()


async def test_a_user_whose_pods_are_alike_costs_no_pod(hub_with, tried) -> None:
    hub = hub_with(TWO_GPUS)

    first = await form(hub, "ann")
    assert set(tried) == {"ann"}
    second = await form(hub, "bob")

    assert "bob" not in tried
    assert first.count("2 of 2 free") == second.count("2 of 2 free") == 3


@pytest.mark.parametrize("of_default", [True, False])
async def test_users_share_no_state_if_a_profile_has_the_owners_name(hub_with, of_default) -> None:
    own = {"kubespawner_override": {"extra_pod_config": {"nodeSelector": {"owner": "{username}"}}}}
    profiles = [{**CPU, **own}, GPU] if of_default else [CPU, {**GPU, **own}]
    hub = hub_with(OF_ANN)

    async def states(name: str) -> object:
        spawner = named(hub.spawner(profile_list=profiles), name)
        return [it["state"] for it in await profiles_of(spawner).states()]

    alone = await states("bob")
    of_ann_s = await states("ann")
    assert alone != of_ann_s
    assert await states("bob") == alone


async def test_a_class_of_others_that_loads_profiles_shares_nothing(hub_with) -> None:
    class Theirs(GPUSpawner):
        async def load_user_options(self) -> None:
            await super().load_user_options()
            if self.user.name == "bob":
                self.node_selector = {"room": "b"}

    hub = hub_with(TWO_GPUS)

    assert FREE in await form(hub, "ann", of=Theirs)
    assert FREE not in await form(hub, "bob", of=Theirs)


async def test_what_admission_did_to_one_user_s_pod_is_nobody_else_s(hub_with) -> None:
    hub = hub_with(TAINTED)
    hub.admission.answer = lambda sent: (
        tolerating(sent) if sent["metadata"]["name"] == "jupyter-ann" else sent
    )

    for _ in range(2):  # the first page learns that admission changes pods
        assert "2 of 2 free" in await form(hub, "ann")
    assert "2 of 2 free" not in await form(hub, "bob")


async def test_a_claim_counts_only_for_its_owner(hub_with) -> None:
    bound = {"volumeName": "v", "accessModes": ["ReadWriteMany"], "storageClassName": ""}
    to_ann = {"name": "claim-ann", "namespace": NAMESPACE}
    hub = hub_with(
        TWO_GPUS,
        ("PersistentVolume", {"metadata": {"name": "v"}, "spec": {"claimRef": to_ann}}),
        (
            "PersistentVolumeClaim",
            {
                "metadata": {**to_ann, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": bound,
            },
        ),
    )
    home = {"name": "h", "persistentVolumeClaim": {"claimName": "claim-{username}"}}

    assert FREE in await form(hub, "ann", volumes=[home], namespace=NAMESPACE)
    assert FREE not in await form(hub, "bob", volumes=[home], namespace=NAMESPACE)
    assert FREE in await form(hub, "ann", volumes=[home], namespace=NAMESPACE)


async def test_policies_are_asked_for_each_page(course) -> None:
    current: dict[str, Any] = {}
    spawner = course.spawner(lambda _: current, profile_list=[CPU, GPU])
    assert (await profiles_of(spawner).form()).count(FREE) == 1

    current = {"none": {"gpus_per_server": 0, "show_withheld": True}}

    assert FREE not in await profiles_of(spawner).form()


async def test_an_older_pod_of_the_name_counts_only_for_its_owner(hub_with) -> None:
    hub = hub_with(TWO_GPUS, ("Pod", pod("jupyter-bob", 2, on="a")))

    async def state(name: str) -> str:
        gpu = (await profiles_of(of(hub, name, namespace=NAMESPACE)).states())[1]
        return str(gpu["state"])

    # What takes the GPUs is bob's last server, which ends before the next one.
    assert await state("ann") == "busy"
    assert await state("bob") == "unknown"
    assert await state("ann") == "busy"


async def test_a_reservation_counts_only_for_its_owner(hub_with, tried, monkeypatch) -> None:
    hub = hub_with(TWO_GPUS)
    await form(hub, "ann")
    find = Reservations.find

    def found(self: Reservations, key: tuple[str, str]) -> Any:
        return object() if key[1] == "jupyter-bob" else find(self, key)

    monkeypatch.setattr(Reservations, "find", found)
    await form(hub, "bob")

    assert "bob" in tried


async def test_only_so_many_pages_are_kept(hub_with, monkeypatch) -> None:
    monkeypatch.setattr(page_availability, "_MOST_ROWS", 4)
    hub = hub_with(TWO_GPUS)
    for number in range(6):
        await form(hub, "ann", priority_class_name=f"p-{number}")

    kept = page_availability.known(hub.runtime(of(hub, "ann"))).rows
    assert len(kept._kept) <= 4


async def read(hub: StillHub, spawner: GPUSpawner, chosen: dict[str, object]) -> Proposal:
    profiles = profiles_of(spawner)
    listed = await profiles._list(spawner)
    profile = next(it for it in listed.profiles if it.slug == chosen["profile"])
    found = page_availability.Looking(
        spawner,
        listed,
        hub.runtime(spawner),
        await profiles.policing.entitlement(),
        profiles.later,
        Turn(1),
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

    first = await form(hub, "ann", **traits("ann"))
    assert len(tried) > 3
    tried.clear()
    second = await form(hub, "bob", **traits("bob"))

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
        await form(hub, name, profile_list=[GPU], **OWN)

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
    profiles = [small, GPU]

    assert "Not available" in await form(hub, "ann", profile_list=profiles, mem_guarantee="100T")
    assert "2 of 2 free" in await form(hub, "bob", profile_list=profiles, mem_guarantee="1G")


async def test_users_share_nothing_if_the_default_profile_hides_that_their_names_are_in_pods(
    hub_with,
) -> None:
    """Each owner has a node of their own; only the default profile may go to all others, too."""
    hub, anywhere = hub_with(OF_ANN), {"extra_pod_config": {"nodeSelector": None}}
    traits = {
        "profile_list": [{**CPU, "kubespawner_override": anywhere}, GPU],
        "extra_pod_config": {"nodeSelector": {"owner": "{username}"}},
    }

    assert "2 of 2 free" in await form(hub, "ann", **traits)
    assert "2 of 2 free" not in await form(hub, "bob", **traits)


async def test_a_claim_that_only_one_profile_has_is_never_another_user_s(hub_with) -> None:
    hub = hub_with(TWO_GPUS)
    scratch = {"name": "s", "persistentVolumeClaim": {"claimName": "scratch-{username}"}}
    gpu = {**GPU, "kubespawner_override": {**GPU["kubespawner_override"], "volumes": [scratch]}}

    for name in ("ann", "bob"):
        spawner = named(hub.spawner(profile_list=[CPU, gpu]), name)
        found = (await read(hub, spawner, {"profile": "gpu"})).decoded
        assert found.spec.volumes[0].persistent_volume_claim.claim_name == f"scratch-{name}"


class MakesPods(GPUSpawner):
    async def get_pod_manifest(self) -> Any:
        made = await super().get_pod_manifest()
        if self.user.name == "bob" and "nvidia.com/gpu" in self.extra_resource_limits:
            made.spec.node_selector = {"gpu": "of another group"}
        return made


async def test_users_share_nothing_if_other_code_makes_the_pods(hub_with) -> None:
    hub = hub_with(TWO_GPUS)

    assert "2 of 2 free" in await form(hub, "ann", of=MakesPods)
    assert "Not available" in await form(hub, "bob", of=MakesPods)


async def test_functions_are_asked_for_each_user_and_once_a_minute(hub_with) -> None:
    now = [0.0]
    hub, calls = hub_with(TWO_GPUS), []

    def limits(spawner: Any) -> dict[str, str]:
        calls.append(spawner.user.name)
        return {"nvidia.com/gpu": "2" if spawner.user.name == "ann" else "3"}

    gpu = {**GPU, "profile_options": {}, "kubespawner_override": {"extra_resource_limits": limits}}
    kept = sharing.Samples(clock=lambda: now[0])
    known = page_availability.known(hub.runtime(of(hub, "ann")))
    msgspec.structs.force_setattr(known, "samples", kept)

    async def shown(name: str) -> str:
        return await form(hub, name, profile_list=[CPU, gpu])

    assert "2 of 2 free" in await shown("ann")
    assert "Not available" in await shown("bob")
    before = len(calls)
    now[0] = 59.0
    await shown("ann")
    assert len(calls) == before
    now[0] = 61.0
    await shown("ann")
    assert calls[before:] == ["ann"]


async def test_a_list_that_changes_is_read_again(hub_with) -> None:
    hub = hub_with(TWO_GPUS)
    listed: list[Callable[..., Any] | dict[str, Any]] = [CPU, dict(GPU)]
    spawner = hub.spawner(profile_list=lambda _: listed)

    assert "One (Free: 2 of 2 free)" in await profiles_of(spawner).form()
    listed[1]["profile_options"] = {}
    assert "One" not in await profiles_of(spawner).form()

"""What one page has found out, shown on the next pages of users whose pods are alike."""

from typing import Any

import pytest

from gpuspawner import GPUSpawner
from gpuspawner.profiles import page_availability, sharing
from gpuspawner.reservations.reservations import Reservations
from tests.unit.makers.hubs import OF_ANN, StillHub, named, tolerating
from tests.unit.makers.profile_clusters import TAINTED, TWO_GPUS, of, profiles_of
from tests.unit.makers.profile_lists import CPU, GPU
from tests.unit.makers.worlds import NAMESPACE, pod

FREE = ">Free<"


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

    async def shown(name: str) -> str:
        return await profiles_of(named(hub.spawner(Theirs, profile_list=[CPU, GPU]), name)).form()

    assert FREE in await shown("ann")
    assert FREE not in await shown("bob")


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
    monkeypatch.setattr(sharing, "_MOST_KEPT", 4)
    hub = hub_with(TWO_GPUS)
    for number in range(6):
        await form(hub, "ann", priority_class_name=f"p-{number}")

    kept = page_availability.known(hub.runtime(of(hub, "ann"))).rows._kept
    assert len(kept._kept) <= 4

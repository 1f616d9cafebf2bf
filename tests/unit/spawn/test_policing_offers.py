"""What the form shows of an accelerator to those to whom policies leave less than is free."""

from typing import Any

from gpuspawner.cluster.health import Stale
from gpuspawner.spawn.preview import preview
from tests.unit.policy.pods import GPU
from tests.unit.spawn.hubs import rows_of


async def surveyed(spawner: Any) -> dict[str, tuple[str, int | None]]:
    """Return the state and what is left of each accelerator, as the form shows it."""
    rows = await rows_of(spawner.gates.sources.accelerators)
    keys = [row.accelerator.key if row.accelerator else "" for row in rows]
    return {key: (row.state.value, row.left) for key, row in zip(keys, rows, strict=True)}


async def test_the_form_says_which_accelerators_a_limit_leaves(course) -> None:
    """The cluster has them free; what keeps alice from them is her own limit."""
    spawner = course.spawner({"two": {"gpus_per_user": {GPU: 2}}})
    assert (await surveyed(spawner))["t4"] == ("free", None)
    course.put(spawner, "alice", "train", 1)
    assert (await surveyed(spawner))["t4"] == ("free", 1)
    course.put(spawner, "alice", "demo", 1)
    assert await surveyed(spawner) == {
        "t4": ("limited", 0),
        "v100": ("absent", None),
        "": ("free", None),
    }


async def test_what_is_left_is_not_guessed_while_nothing_can_be_counted(course) -> None:
    spawner = course.spawner({"two": {"gpus_per_user": 2}})
    course.put(spawner, "alice", "train", 2)
    course.health = Stale(60.0, "gone")
    assert (await surveyed(spawner))["t4"] == ("free", None)


async def test_a_server_that_does_not_exist_yet_replaces_no_pod(course) -> None:
    spawner = course.spawner({"two": {"gpus_per_user": {GPU: 2}}})
    course.show(spawner, 2)
    policing = spawner.gates.sources.accelerators.policing
    t4 = course.of(spawner).offers.accelerators["t4"]

    for server, gpus in (("", None), ("train", 0)):
        left = await policing.of(server).entitlement()
        assert left.remaining(t4).gpus == gpus


async def test_a_server_that_does_not_exist_yet_has_what_policies_leave_to_its_name(course) -> None:
    spawner = course.spawner({"default": {"servers": [""], "accelerators": []}})
    accelerators = spawner.gates.sources.accelerators
    rows = await rows_of(accelerators.of("train"))

    found, _ = await preview(accelerators, {}, "train")
    of_default, _ = await preview(accelerators, {}, "")

    assert [row.accelerator.key for row in rows if row.accelerator] == ["t4", "v100"]
    assert found.grant.accelerator.key == "t4"
    assert of_default.grant.accelerator is None


async def test_the_default_server_counts_for_a_server_that_does_not_exist_yet(course) -> None:
    spawner = course.spawner({"two": {"gpus_per_user": 2}})
    course.show(spawner, 2)
    accelerators = spawner.gates.sources.accelerators

    own = await rows_of(accelerators)
    others = await rows_of(accelerators.of("train"))

    assert (own[0].state.value, others[0].state.value) == ("free", "limited")

"""What policies leave to a server's owner: what the form shows, and what is proposed instead."""

from collections.abc import Callable
from typing import Any

import pytest

from gpuspawner.cluster.health import Live, Stale
from gpuspawner.gates.preview import preview
from gpuspawner.messages import state_text
from gpuspawner.policies.entitlement import within
from gpuspawner.policies.limits import OverLimit, Standing
from gpuspawner.policies.policies import Limit, Measure, Per, Policy, What
from gpuspawner.policies.remaining import Remaining
from gpuspawner.preflight.availability import Availability, State
from tests.unit.makers.courses import T4, Course, begin, refused
from tests.unit.makers.hubs import StillHub, rows_of
from tests.unit.makers.policy_pods import GPU, container, server_pod
from tests.unit.makers.profile_lists import CPU
from tests.unit.makers.profile_lists import GPU as PROFILE
from tests.unit.makers.worlds import labelled, node, pod


async def surveyed(spawner: Any) -> dict[str, tuple[str, int | None]]:
    """Return the state and what is left of each accelerator, as the form shows it."""
    rows = await rows_of(spawner.gpuspawner_gates.sources.accelerators)
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


SHARE = {"gpus_per_group": 0, "groups": ["course"]}
HUB_WIDE = {"gpus_per_user": 3, "gpu_servers_per_user": 2, "lifetime": "8h"}


@pytest.mark.parametrize("traits", [{}, {"accelerators": {}}, {"profile_list": [CPU, PROFILE]}])
@pytest.mark.parametrize(
    "guests",
    [{"accelerators": []}, {"gpus_per_server": 0}, {"gpus_per_user": 0}, SHARE],
    ids=str,
)
async def test_somebody_without_gpus_reads_why_and_no_figures_of_gpus(
    traits, guests, course
) -> None:
    guests = {**guests, "explanation": "GPUs are for members"}
    policies = {"all": HUB_WIDE, "guests": {**guests, "memory_per_user": "8Gi"}}
    spawner = course.spawner(policies, **traits)

    form = await spawner.get_options_form()

    assert form.index("No GPU is offered to you.") < form.index("GPUs are for members.")
    assert "You can use 8 GiB of memory at a time." in form
    assert "to choose from" not in form
    for figure in ("3 GPUs", "0 GPUs", "2 servers with a GPU", "A server with a GPU ends"):
        assert figure not in form


async def test_no_figures_are_told_of_a_model_that_is_not_offered(course) -> None:
    every = {"gpus_per_user": {"t4": 2, "v100": 1}}
    spawner = course.spawner({"all": every, "guests": {"gpus_per_server": {"v100": 0}}})

    form = await spawner.get_options_form()

    assert "You can use 2 × T4 at a time." in form
    assert "V100 at a time" not in form
    assert "No GPU is offered to you." not in form


async def test_what_is_left_is_not_guessed_while_nothing_can_be_counted(course) -> None:
    spawner = course.spawner({"two": {"gpus_per_user": 2}})
    course.put(spawner, "alice", "train", 2)
    course.health = Stale(60.0, "gone")
    assert (await surveyed(spawner))["t4"] == ("free", None)


async def test_a_server_that_does_not_exist_yet_has_what_policies_leave_to_its_name(course) -> None:
    spawner = course.spawner({"default": {"servers": [""], "accelerators": []}})
    accelerators = spawner.gpuspawner_gates.sources.accelerators
    rows = await rows_of(accelerators.of("train"))

    found, _ = await preview(accelerators, {}, "train")
    of_default, _ = await preview(accelerators, {}, "")

    assert [row.accelerator.key for row in rows if row.accelerator] == ["t4", "v100"]
    assert found.grant.accelerator.key == "t4"
    assert of_default.grant.accelerator is None


async def test_the_default_server_counts_for_a_server_that_does_not_exist_yet(course) -> None:
    spawner = course.spawner({"two": {"gpus_per_user": 2}})
    course.show(spawner, 2)
    accelerators = spawner.gpuspawner_gates.sources.accelerators

    own = await rows_of(accelerators)
    others = await rows_of(accelerators.of("train"))

    assert (own[0].state.value, others[0].state.value) == ("free", "limited")


T4_ONLY = {"base": {"image": "base:1"}, "torch": {"image": "torch:1", "accelerators": ["t4"]}}
SIZES: dict[str, Any] = {
    "images": T4_ONLY,
    "memory_choices": ["4Gi", "2Gi"],
    "cpu_choices": [2, 1],
    "accelerators": {"t4": {**T4, "memory_choices": ["1Gi"], "cpu_choices": [0.5]}},
}


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ({"images": ["torch"]}, "it isn't offered to you"),
        ({"images": ["torch"], "explanation": "Use T4s."}, "Use T4s."),
        ({"memory_per_server": "1Gi"}, "the limit is 1 GiB of memory"),
        ({"memory_per_user": "1Gi"}, "the limit is 1 GiB of memory"),
        ({"cpu_per_server": 0.5}, "the limit is 0.5 cores of CPU"),
    ],
    ids=str,
)
@pytest.mark.parametrize("health", [Live(0.1), Stale(60.0, "gone")], ids=["counted", "uncounted"])
async def test_a_server_without_a_gpu_that_policies_never_allow_is_not_offered(
    course, policy, said, health
) -> None:
    """It stays on the form even so: without it, somebody would get KubeSpawner's own."""
    spawner = course.spawner({"course": policy}, **SIZES)
    course.health = health

    t4, without = await rows_of(spawner.gpuspawner_gates.sources.accelerators)

    words = state_text(without)
    assert (t4.state, without.state) == (State.FREE, State.WITHHELD)
    assert (words.word, words.detail) == ("Not offered", said)
    assert (await refused(spawner, accelerator=None)).status_code in (403, 503)


@pytest.mark.parametrize(
    "policy",
    [
        {"images": ["base"]},
        {"images": ["base", "torch"]},
        {"memory_per_server": "2Gi", "cpu_per_user": 1},
        {"gpus_per_user": 0},
    ],
    ids=str,
)
async def test_a_server_without_a_gpu_is_free_if_one_choice_is_left(course, policy) -> None:
    spawner = course.spawner({"course": policy}, **SIZES)

    assert (await surveyed(spawner))[""] == ("free", None)


async def test_a_size_that_can_be_entered_is_a_choice_too(course) -> None:
    entered = {"min": "1Gi", "max": "4Gi"}
    spawner = course.spawner(
        {"small": {"memory_per_user": "1Gi"}}, unlisted_memory=entered, **SIZES
    )

    assert (await surveyed(spawner))[""] == ("free", None)


GPU_OR_NONE = pytest.mark.parametrize("accelerator", ["t4", None])


@GPU_OR_NONE
@pytest.mark.parametrize(
    ("policy", "own"),
    [
        ({"memory_per_server": "1Gi"}, {"mem_guarantee": "2G"}),
        ({"memory_per_user": "1Gi"}, {"mem_limit": "2G"}),
        ({"cpu_per_server": 1}, {"cpu_guarantee": 1.5}),
    ],
    ids=str,
)
async def test_without_sizes_to_choose_from_kubespawner_s_own_count(
    course, accelerator, policy, own
) -> None:
    spawner = course.spawner({"small": policy}, **own)

    assert (await surveyed(spawner))[accelerator or ""] == ("withheld", 0)
    assert (await refused(spawner, accelerator=accelerator)).status_code == 403


def entering(course: Course, least: str) -> Any:
    """A spawner whose owner may have 1 GiB, and can enter sizes from the least one on."""
    entered = {"min": least, "max": "4Gi", "step": "512Mi"}
    policies = {"small": {"memory_per_server": "1Gi"}}
    return course.spawner(policies, mem_guarantee="2G", unlisted_memory=entered)


@GPU_OR_NONE
async def test_a_size_that_can_be_entered_counts_if_it_is_below_kubespawner_s_own(
    course, accelerator
) -> None:
    spawner = entering(course, "512Mi")

    assert (await surveyed(spawner))[accelerator or ""] == ("free", None)
    await begin(spawner, accelerator=accelerator, memory="512Mi")


@GPU_OR_NONE
async def test_a_size_that_can_be_entered_is_too_large_if_a_policy_denies_it(
    course, accelerator
) -> None:
    spawner = entering(course, "1536Mi")

    assert (await surveyed(spawner))[accelerator or ""] == ("withheld", 0)
    refusal = await refused(spawner, accelerator=accelerator, memory="1536Mi")
    assert refusal.status_code == 403


async def test_kubespawner_s_own_sizes_count_beside_other_servers(course) -> None:
    spawner = course.spawner({"small": {"memory_per_user": "3Gi"}}, mem_guarantee="2G")
    before = await surveyed(spawner)
    assert (before["t4"], before[""]) == (("free", None), ("free", None))

    running = server_pod("alice", "train", containers=[container(memory="2Gi")])
    course.put_pod(spawner, "alice", "train", running)

    found = await surveyed(spawner)
    assert (found["t4"], found[""]) == (("limited", 0), ("limited", 0))


# What is proposed instead of a busy accelerator


L4 = {**T4, "display_name": "L4", "node_selector": {"gpu": "l4"}, "counts": [1, 2]}
L4_NODE = ("Node", labelled(node("b", 4), {"gpu": "l4"}))
FULL = ("Node", node("a", 1)), ("Pod", pod("somebody-s", 1, on="a"))
TRAITS: dict[str, Any] = {"accelerators": {"t4": T4, "l4": L4}, "autoscaling": "none"}


def course_of(hub_with: Callable[..., StillHub]) -> Course:
    return Course(hub_with(*FULL, L4_NODE))


@pytest.mark.parametrize(
    ("policy", "proposed"),
    [
        ({"gpus_per_user": 2}, ["l4", None]),
        ({"gpus_per_user": {"l4": 1}}, [None]),
        ({"gpu_servers_per_user": 2}, ["l4", None]),
        ({"groups": ["course"], "gpus_per_group": {"l4": 1}}, [None]),
        ({"accelerators": ["t4"]}, [None]),
    ],
    ids=str,
)
async def test_no_alternative_is_one_that_a_policy_denies(policy, proposed, hub_with) -> None:
    course = course_of(hub_with)
    spawner = course.spawner({"course": policy}, **TRAITS)
    running = server_pod(
        "alice", "train", containers=[container(gpu=1)], nodeSelector={"gpu": "l4"}
    )
    course.put_pod(spawner, "alice", "train", running)

    refusal = await refused(spawner)

    found = [it.grant.accelerator for it in refusal.on_form.alternatives]
    assert [it and it.key for it in found] == proposed


async def test_a_server_without_a_gpu_that_a_policy_denies_is_no_alternative(hub_with) -> None:
    images = {"base": {"image": "base:1"}, "torch": {"image": "torch:1", "accelerators": ["t4"]}}
    spawner = course_of(hub_with).spawner({"c": {"images": ["torch"]}}, images=images, **TRAITS)

    refusal = await refused(spawner)

    assert (await refused(spawner, accelerator=None)).slug == "policy"
    assert refusal.on_form.alternatives == ()


async def test_a_question_gets_the_same_alternatives_as_the_start(hub_with) -> None:
    course = course_of(hub_with)
    spawner = course.spawner({"course": {"gpus_per_user": {"l4": 0}}}, **TRAITS)
    accelerators = spawner.gpuspawner_gates.sources.current

    found, _offers = await preview(accelerators, {"accelerator": "t4"}, "")

    assert [it.grant.accelerator for it in found.alternatives] == [None]


async def test_alternatives_have_no_more_gpus_than_are_left(course) -> None:
    async def proposed() -> list[str]:
        refusal = await refused(spawner, accelerator="v100", gpus=2)
        found = [it.grant for it in refusal.on_form.alternatives]
        return [f"{it.gpus} {it.accelerator.key if it.accelerator else ''}" for it in found]

    spawner = course.spawner({"two": {"gpus_per_user": {GPU: 2}}})
    assert await proposed() == ["2 t4", "0 "]
    course.put(spawner, "alice", "train", 1)
    assert await proposed() == ["1 t4", "0 "]
    course.put(spawner, "alice", "demo", 1)
    assert await proposed() == ["0 "]


# How limits change the availability of an accelerator

STANDING = Standing(Policy("course"), Limit(Per.USER, Measure(What.GPUS), 2), "", 2)
REACHED = Remaining(0, OverLimit(STANDING, 1))


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        *((it, State.LIMITED) for it in State if it not in (State.AWAY, State.ABSENT)),
        (State.AWAY, State.AWAY),
        (State.ABSENT, State.ABSENT),
    ],
)
def test_a_limit_that_is_used_up_is_told_unless_no_node_could_hold_the_server(state, shown):
    here = within(REACHED, Availability(None, state))

    denied = REACHED.reached if shown is State.LIMITED else None
    assert (here.state, here.left, here.denial) == (shown, 0, denied)

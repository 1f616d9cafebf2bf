"""What policies leave of the profiles: what the form shows, and what a start gets."""

from typing import Any

import pytest

from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.availability import State
from gpuspawner.preflight.decision import InQueue, Reason, Refuse, Start, UnknownRules, Wait
from gpuspawner.preflight.kueue import PlaceInQueue
from gpuspawner.profiles.profile_availability import availability, fits_now
from gpuspawner.scaling.outlook import MayScaleUp, Source
from gpuspawner.start.refusal import Refusal
from localcluster.kueue.objects import local_queue
from tests.unit.makers.courses import Course, begin, refused
from tests.unit.makers.kueue_worlds import flavor, known, pool
from tests.unit.makers.profile_clusters import ONE_TAKEN, TAKEN_TOO, TWO_GPUS, profiles_of
from tests.unit.makers.profile_lists import CPU, GPU
from tests.unit.makers.storage import claim, volume
from tests.unit.makers.worlds import labelled, node, pod

TWO: dict[str, Any] = {
    **GPU,
    "display_name": "Two GPUs",
    "slug": "two",
    "kubespawner_override": {
        **GPU["kubespawner_override"],
        "extra_resource_limits": {"nvidia.com/gpu": "2"},
    },
    "profile_options": {},
}
HOME = {"claimName": "home"}
BIG = {"display_name": "Big", "slug": "big", "kubespawner_override": {"mem_guarantee": "64G"}}


async def states(spawner: Any) -> dict[str, tuple[str | None, str]]:
    """The state of each profile and choice that the form shows."""
    found = {}
    for profile in await profiles_of(spawner).states():
        found[profile["profile"]] = profile["state"], profile["detail"]
        for choice in profile["choices"]:
            found[choice["choice"]] = choice["state"], choice["detail"]
    return found


async def test_what_kueue_says_of_a_pod_that_it_may_leave_alone_is_unknown_as_for_a_start(
    hub_with,
) -> None:
    """Admission doesn't answer here, so nobody knows whether Kueue holds the pod back."""
    hub = hub_with(TWO_GPUS)
    hub.admission.answer = lambda _: None
    spawner = hub.spawner(profile_list=[CPU, GPU], kueue_queue="gpus")
    stopped = local_queue("gpus", spawner.namespace, "team-a", stopPolicy="Hold")
    known(stopped, pool("team-a", {"nominalQuota": "2"}), flavor(), store=hub.view.queues)

    found = await states(spawner)

    assert found["gpu"] == ("unknown", "we can't check right now")
    assert found["cpu-only"] == (None, "")


async def test_a_profile_whose_files_are_in_use_lacks_no_memory(hub_with) -> None:
    home = {**claim("home", volume="disk", modes=("ReadWriteOncePod",))}
    home["metadata"] = {**home["metadata"], "namespace": "default"}
    other = pod("other", 0, on="a", volumes=[{"name": "h", "persistentVolumeClaim": HOME}])
    other["metadata"]["namespace"] = "default"
    on_disk = ("PersistentVolumeClaim", home), ("PersistentVolume", volume("disk", claim="home"))
    hub = hub_with(TWO_GPUS, *on_disk, ("Pod", other))
    volumes = [{"name": "home", "persistentVolumeClaim": HOME}]
    spawner = hub.spawner(profile_list=[CPU, GPU], volumes=volumes)

    found = await states(spawner)

    assert found["gpu"] == ("busy", "2 of 2 free, but your server can't use them right now")
    assert found["cpu-only"] == ("busy", "your server can't start right now")


async def test_a_profile_that_asks_for_more_than_anybody_may_have_is_not_shown(course) -> None:
    spawner = course.spawner({"one": {"gpus_per_server": 1}}, profile_list=[TWO, GPU, CPU])

    form = await profiles_of(spawner).form()

    assert "Two GPUs" not in form
    assert list(await states(spawner)) == ["gpu", "one", "two", "cpu-only"]


async def test_a_choice_that_nobody_may_have_says_so_in_the_administrator_s_words(course) -> None:
    spawner = course.spawner(
        {"one": {"gpus_per_server": 1, "explanation": "One is enough <here>"}},
        profile_list=[GPU, CPU],
    )

    assert await states(spawner) == {
        "gpu": ("free", "32 of 32 free, at most 16 on one machine"),
        "one": ("free", "32 of 32 free, at most 16 on one machine"),
        "two": ("withheld", "One is enough <here>."),
        "cpu-only": (None, ""),
    }
    form = await profiles_of(spawner).form()
    assert "Two (Not offered: One is enough &lt;here&gt;.)" in form
    assert "<here>" not in form


async def test_a_used_up_limit_is_told_beside_each_profile_that_would_break_it(course) -> None:
    spawner = course.spawner({"two": {"gpus_per_user": 2}}, profile_list=[GPU, CPU])
    course.put(spawner, "alice", "train", 2)

    found = await states(spawner)

    said = "you're using 2 of your 2 GPUs; stop a server first"
    assert found["gpu"] == found["one"] == found["two"] == ("limited", said)
    assert found["cpu-only"] == (None, "")


async def test_the_memory_of_a_profile_without_a_gpu_counts(course) -> None:
    policies = {"small": {"memory_per_server": "32Gi", "show_withheld": True}}
    spawner = course.spawner(policies, profile_list=[CPU, BIG])

    assert (await states(spawner))["big"] == ("withheld", "the limit is 32 GiB of memory")


async def test_what_is_withheld_is_shown_if_the_administrator_wants_it(course) -> None:
    policies = {"cpu": {"profiles": ["cpu-only"], "explanation": "Ask", "show_withheld": True}}
    spawner = course.spawner(policies, profile_list=[CPU, GPU])

    assert (await states(spawner))["gpu"] == ("withheld", "Ask.")


async def test_withheld_profiles_are_shown_with_their_reasons_if_nothing_else_is_left(
    course,
) -> None:
    policies = {"none": {"profiles": [], "explanation": "Apply for a project first."}}
    spawner = course.spawner(policies, profile_list=[CPU, GPU])

    found = await states(spawner)

    assert found["gpu"] == found["cpu-only"] == ("withheld", "Apply for a project first.")


async def test_a_server_that_does_not_exist_yet_has_what_policies_leave_to_its_name(course) -> None:
    policies = {"default": {"servers": [""], "profiles": ["cpu-only"], "show_withheld": True}}
    profiles = profiles_of(course.spawner(policies, profile_list=[GPU, CPU]))

    of_default, of_train = [await it.states() for it in (profiles.of(""), profiles.of("train"))]

    assert (of_default[0]["profile"], of_default[0]["state"]) == ("gpu", "withheld")
    assert (of_train[0]["profile"], of_train[0]["state"]) == ("gpu", "free")


@pytest.mark.parametrize("options", [{}, {"profile": ""}, {"profile": "cpu-only"}, None])
async def test_without_any_profile_on_offer_none_starts_not_even_the_default(
    options, course
) -> None:
    spawner = course.spawner({"none": {"profiles": []}}, profile_list=[CPU, GPU])
    spawner.user_options = options

    with pytest.raises(Refusal) as raised:
        await spawner.run_pre_spawn_hook()

    assert raised.value.status_code == 403


async def test_the_default_is_the_first_profile_that_is_left(course) -> None:
    spawner = course.spawner({"gpu": {"profiles": ["gpu"]}}, profile_list=[CPU, GPU])
    spawner.user_options = {}

    await begin(spawner, profile="")

    assert spawner.user_options["profile"] == "gpu"


@pytest.mark.parametrize(
    ("most", "offered"), [(2, ["Start “Two GPUs”", "Start “CPU only”"]), (1, ["Start “CPU only”"])]
)
async def test_no_alternative_is_one_that_a_policy_denies(most, offered, hub_with) -> None:
    v100 = labelled(node("b", 4), {"gpu": "v100"})
    course = Course(hub_with(TWO_GPUS, ONE_TAKEN, TAKEN_TOO, ("Node", v100)))
    override = {**TWO["kubespawner_override"], "node_selector": {"gpu": "v100"}}
    spawner = course.spawner(
        {"few": {"gpus_per_server": most}},
        profile_list=[GPU, {**TWO, "kubespawner_override": override}, CPU],
        autoscaling="none",
    )

    refusal = await refused(spawner, profile="gpu")

    assert [it.label for it in refusal.on_form.profiles] == offered


@pytest.mark.parametrize(
    ("nodes", "state", "fits"),
    [
        (Start(Grant()), State.FREE, True),
        (Refuse(Grant(), Reason.BUSY), State.BUSY, False),
        (Wait(Grant(), MayScaleUp(Source.NODES)), State.MAY_SCALE_UP, False),
        (Start(Grant(), (UnknownRules(("Kueue decides",)),)), State.UNKNOWN, False),
    ],
)
def test_the_card_of_a_profile_in_a_queue_has_the_figures_of_the_nodes(nodes, state, fits) -> None:
    notes = nodes.notes if isinstance(nodes, Start) else ()
    queued = Start(Grant(), (*notes, InQueue(PlaceInQueue("gpus"), nodes)))

    assert availability(queued, None).state is state
    assert fits_now(queued) is fits

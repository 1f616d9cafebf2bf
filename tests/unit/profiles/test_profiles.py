"""Profiles offered to one user: the form, with the availability of each profile."""

import asyncio
import copy
import weakref
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import kubespawner
import pytest

from gpuspawner.cluster.health import Reading, Stale
from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.dry_runs import DryRuns, TooManyDryRunsError
from gpuspawner.preflight.rejection import Denied, Of, Rejection
from gpuspawner.start import submitted_form
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.courses import NODES, Course, refused, refused_query
from tests.unit.makers.hubs import A100, TAINT, tolerating
from tests.unit.makers.profile_clusters import ONE_TAKEN, TAINTED, TAKEN_TOO, TWO_GPUS, profiles_of
from tests.unit.makers.profile_lists import CPU, GPU, OWN_IMAGE
from tests.unit.makers.waiters import FULL
from tests.unit.makers.worlds import having, labelled, node, pod

NO_DEVICES: list[dict[str, Any]] = [
    {**CPU, "display_name": "A <em>small</em> one"},
    {
        "display_name": "Big",
        "slug": "big",
        "default": True,
        "kubespawner_override": {"mem_limit": "8G", "node_selector": {"disk": "fast"}},
        "profile_options": {"image": GPU["profile_options"]["image"]},
    },
]
FAST_DISK = ("Node", {**node("fast", 0), "metadata": {"name": "fast", "labels": {"disk": "fast"}}})
SAVED: list[dict[str, Any]] = [
    {},
    {"profile": "big"},
    {"profile": "big", "image": "torch", "garbage": ["</script>", {"a": 1}]},
    {"profile": "big", "image--unlisted-choice": "quay.io/<b>"},
]


@pytest.mark.usefixtures("clock")
async def test_a_list_that_never_comes_lets_no_start_wait_forever(hub_with, caplog) -> None:
    """KubeSpawner asks for it in the start, which the hub's start_timeout ends."""

    async def profiles(_: object) -> list[dict[str, Any]]:
        return [CPU] if await asyncio.Event().wait() else []

    spawner = hub_with(TWO_GPUS).spawner(profile_list=profiles)

    refusal = await asyncio.wait_for(refused(spawner), 3600)

    assert refusal.slug == "misconfigured"
    assert "Can't read KubeSpawner.profile_list, or its function fails" in caplog.text


def of_staff(hub: Any, *, by_group: Any, **traits: Any) -> Any:
    """Return the spawner of somebody whose group has profiles of its own."""
    groups = {"s": {"groups": ["staff"], "spawner_override": {"profile_list": by_group}}}
    spawner = hub.spawner(group_overrides=groups, autoscaling="none", **traits)
    spawner.user.groups = [SimpleNamespace(name="staff")]
    return spawner


OF_STAFF = {
    **GPU,
    "kubespawner_override": {**GPU["kubespawner_override"], "node_selector": {"gpu": "staff"}},
}


@pytest.mark.each_hub
async def test_a_form_has_the_profiles_of_its_owner_s_groups(hub_with) -> None:
    used = ("Node", labelled(node("a", 1), {"gpu": "a100"})), ("Pod", pod("x", 1, on="a"))
    hub = hub_with(*used, ("Node", labelled(node("staff", 2), {"gpu": "staff"})))
    assert await refused_query(hub.spawner(profile_list=[GPU], autoscaling="none"), profile="gpu")
    new = {**OF_STAFF, "slug": "new"}
    spawner = of_staff(hub, by_group=[OF_STAFF, new], profile_list=[GPU])

    for slug in ("gpu", "new"):
        assert await spawner.options_from_query({"opt-profile": [slug]}) == {"profile": slug}
        assert (await spawner.run_options_from_form({"profile": [slug]}))["profile"] == slug
    assert [it["profile"] for it in await profiles_of(spawner).states()] == ["gpu", "new"]
    assert spawner.profile_list == [GPU]


@pytest.mark.parametrize("traits", [{}, {"accelerators": {"a100": A100}}])
async def test_who_gets_profiles_by_a_group_alone_chooses_among_these(hub_with, traits) -> None:
    hub = hub_with(TWO_GPUS)

    spawner = of_staff(hub, by_group=[GPU], **traits)

    assert await spawner.gpuspawner_gates.sources.offered() is profiles_of(spawner)
    assert "profile-option-gpu--gpus" in await spawner.get_options_form()


async def test_who_gets_profiles_by_a_group_alone_has_a_form_on_a_hub_without_gpus(
    hub_with,
) -> None:
    spawner = of_staff(hub_with(("Node", node("a", 0))), by_group=[CPU])

    assert "profile" in await spawner.get_options_form()


with_dictionaries = pytest.mark.skipif(
    kubespawner.version_info < (7, 1), reason="version: KubeSpawner 7.1 brought dictionaries"
)


@pytest.mark.each_hub
@with_dictionaries
async def test_a_form_leaves_its_spawner_s_profiles_as_they_are(hub_with) -> None:
    spawner = of_staff(hub_with(TWO_GPUS), by_group={"2": GPU}, profile_list={"1": CPU})

    form = await spawner.get_options_form()
    await spawner.run_options_from_form({"profile": ["gpu"]})

    assert "profile-option-gpu--gpus" in form
    assert spawner.profile_list == {"1": CPU}


def no_turn(_: Manifest) -> None:
    raise TooManyDryRunsError


@pytest.mark.parametrize(
    ("answer", "is_known"),
    [(lambda _: None, True), (no_turn, False)],
    ids=["no answer", "too many dry runs"],
)
async def test_a_page_asks_admission_once_if_it_does_not_answer(hub_with, answer, is_known) -> None:
    """If a webhook hangs, each question takes its full timeout, and there are many profiles."""
    hub = hub_with()
    hub.admission.answer = answer
    spawner = hub.spawner(profile_list=[GPU, {**GPU, "slug": "other"}])

    assert ("Not available" in await profiles_of(spawner).form()) == is_known
    assert len(hub.admission.asked) == 1


@pytest.mark.parametrize("saved", SAVED, ids=str)
async def test_without_devices_the_form_is_exactly_kubespawner_s(saved, hub_with) -> None:
    hub = hub_with(TWO_GPUS, FAST_DISK)
    stock = hub.stock_spawner(profile_list=NO_DEVICES)
    spawner = hub.spawner(profile_list=NO_DEVICES)
    stock.user_options = spawner.user_options = saved

    assert await profiles_of(spawner).form() == stock._options_form_default()


async def test_an_administrator_s_own_template_shows_the_states_too(hub_with) -> None:
    template = (
        "{% for profile in profile_list %}<article>{{ profile.description }}"
        "{% for option in (profile.profile_options or {}).values() %}"
        "{% for choice in option.choices.values() %}<i>{{ choice.display_name }}</i>{% endfor %}"
        "{% endfor %}</article>{% endfor %}"
    )
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU], profile_form_template=template)

    form = await profiles_of(spawner).form()

    assert form.startswith("<article>For <i>courses</i></article>")
    assert "Free</span> 2 of 2 free" in form
    assert "<i>Two (Free: 2 of 2 free)</i><i>Base</i><i>Torch</i>" in form


async def test_a_profile_without_devices_has_a_state_only_if_it_cannot_start(hub_with) -> None:
    choices = {
        f"{it}": {"display_name": f"{it} GB", "kubespawner_override": {"mem_guarantee": f"{it}G"}}
        for it in (8, 900)
    }
    size = {"display_name": "Memory", "choices": choices}
    large = {**CPU, "slug": "l", "kubespawner_override": {"cpu_guarantee": 90}}
    profiles = [{**CPU, "profile_options": {"size": size}}, large]
    spawner = hub_with(TWO_GPUS).spawner(profile_list=profiles)

    form = await profiles_of(spawner).form()

    assert "<p>For <i>courses</i></p>" in form
    assert ">8 GB<" in form
    assert ">900 GB (Not available: no machine here can provide it)<" in form
    assert form.count("Not available</span> no machine here can provide it") == 1


async def test_the_states_of_an_open_form_are_those_of_a_page(hub_with) -> None:
    hub = hub_with(TWO_GPUS, ONE_TAKEN)

    cpu, gpu = await profiles_of(hub.spawner(profile_list=[CPU, GPU])).states()

    nothing = {"state": None, "word": "", "detail": "", "gpus": None, "choices": [], "images": []}
    assert cpu == {"profile": "cpu-only", **nothing}
    assert (gpu["profile"], gpu["state"], gpu["detail"]) == ("gpu", "free", "1 of 2 free")
    assert gpu["gpus"]["most_free"] == 1
    assert [(it["option"], it["choice"], it["label"]) for it in gpu["choices"]] == [
        ("gpus", "one", "One (Free: 1 of 2 free)"),
        ("gpus", "two", "Two (In use: 1 of 2 free)"),
    ]
    images = {"base": "Base", "torch": "Torch"}.items()
    assert gpu["images"] == [
        {"option": "image", "choice": key, "label": label} for key, label in images
    ]


@pytest.mark.parametrize(
    ("override", "state"),
    [
        ({"image": "{value}"}, "free"),
        ({"image": "{value}", "node_selector": {"gpu": "{value}"}}, None),
    ],
)
async def test_a_profile_has_a_state_if_what_is_written_in_moves_no_pod(
    override, state, hub_with
) -> None:
    write_in = {"enabled": True, "kubespawner_override": override}
    own = {**OWN_IMAGE, "profile_options": {"image": {"unlisted_choice": write_in}}}

    found = await profiles_of(hub_with(TWO_GPUS).spawner(profile_list=[own, GPU])).states()

    assert [it["state"] for it in found] == [state, "free"]


async def test_a_profile_into_which_something_is_written_is_no_button(hub_with) -> None:
    free = {**OWN_IMAGE, "kubespawner_override": {}}
    hub = hub_with(TWO_GPUS, ONE_TAKEN)
    spawner = hub.spawner(profile_list=[GPU, free, CPU], autoscaling="none")

    refusal = await refused(spawner, profile="gpu", gpus="two")

    assert [it.label for it in refusal.on_form.profiles] == [
        "Start “GPU server” with “One”",
        "Start “CPU only”",
    ]


async def test_a_state_asks_as_seldom_about_what_the_hub_s_own_code_may_mend(hub_with) -> None:
    hub, minutes = hub_with(TWO_GPUS, ONE_TAKEN, TAKEN_TOO), count()
    hub.admission.answer = lambda _: Rejection(Of.POD, Denied("a server needs a team"), "denied")
    listed = [{**GPU, "profile_options": {}}]
    spawner = hub.spawner(profile_list=listed, modify_pod_hook=lambda _, pod: pod)
    hub.runtime(spawner).dry_runs = DryRuns(hub.admission, clock=lambda: 120.0 * next(minutes))

    for _ in range(3):
        [gpu] = await profiles_of(spawner).states()
        assert gpu["state"] == "busy"
    assert len(hub.admission.asked) == 1


async def test_availability_is_added_after_the_administrator_s_text(hub_with) -> None:
    listed = [{**GPU, "description": "With <a href='/docs'>a card</a>"}, CPU]
    before = copy.deepcopy(listed)

    form = await profiles_of(hub_with(TWO_GPUS).spawner(profile_list=listed)).form()

    assert "<p>With <a href='/docs'>a card</a><br><span" in form
    assert listed == before


async def test_the_form_says_that_the_cluster_is_being_read(hub_with) -> None:
    hub = hub_with(TWO_GPUS)
    hub.view.now = Reading(1.0)

    form = await profiles_of(hub.spawner(profile_list=[GPU])).form()

    assert "Checking</span> still reading the cluster" in form


async def test_a_redrawn_form_keeps_the_choices_on_every_kubespawner(hub_with) -> None:
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU])
    submitted_form.keep(
        {"profile": "gpu", "gpus": "two", "image--unlisted-choice": "quay.io/</script>'"}
    )

    form = " ".join((await profiles_of(spawner).form()).split())

    assert 'value="gpu" checked' in form
    assert 'value="cpu-only" checked' not in form
    assert '<option value="two" selected>' in form
    assert r'--image--unlisted-choice", "quay.io/\u003c/script\u003e\u0027"]]' in form


@pytest.mark.parametrize(
    ("world", "used"), [(FULL, 0), (NODES, 1)], ids=["all is in use", "a limit is reached"]
)
async def test_a_profile_can_be_waited_for_although_nothing_else_can_start(
    hub_with, world, used
) -> None:
    course = Course(hub_with(*world))
    only = {**GPU, "profile_options": {}}
    spawner = course.spawner({"course": {"gpus_per_user": 1}}, profile_list=[only], queue=True)
    if used:
        course.put(spawner, "alice", "train", used)

    with pytest.raises(Refusal) as refusal:
        await spawner.run_options_from_form({"profile": ["gpu"]})

    assert refusal.value.on_form.profiles == ()
    assert 'name="wait"' in await spawner.get_options_form()


async def test_a_limit_leaves_profiles_that_fit_only_after_admission(hub_with) -> None:
    course = Course(hub_with(TAINTED))
    course.hub.admission.answer = tolerating
    spawner = course.spawner({"course": {"gpus_per_user": 2}}, profile_list=[GPU, CPU])
    course.put(spawner, "alice", "train", 1)
    sent = {"profile": ["gpu"], "profile-option-gpu--gpus": ["two"]}

    with pytest.raises(Refusal) as refusal:
        await spawner.run_options_from_form(sent)

    assert [it.label for it in refusal.value.on_form.profiles] == [
        "Start “GPU server” with “One”",
        "Start “CPU only”",
    ]


@pytest.mark.each_hub
async def test_a_broken_expression_does_not_keep_the_refusal_from_the_form(hub_with) -> None:
    """A function's list isn't checked when the hub starts."""
    write_in = {"enabled": True, "validation_regex": "quay.io/("}
    image = {"choices": {"base": {"display_name": "Base"}}, "unlisted_choice": write_in}
    broken = {"display_name": "B", "profile_options": {"image": image}}
    spawner = hub_with(TWO_GPUS).spawner(profile_list=lambda _: [CPU, broken])
    sent = {"profile": ["b"], "profile-option-b--image--unlisted-choice": ["quay.io/a"]}

    with pytest.raises(Refusal, match="an error in the hub's configuration"):
        await spawner.run_options_from_form(sent)

    form = " ".join((await spawner.get_options_form()).split())
    assert 'value="b" checked' in form
    assert '[["profile-option-b--image--unlisted-choice", "quay.io/a"]]' in form


async def test_a_refused_text_stays_on_the_form_with_a_message_that_has_its_label(hub_with) -> None:
    """The default in its place would start another image at the next click."""
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU])
    sent = {"profile": ["gpu"], "profile-option-gpu--image--unlisted-choice": ["docker.io/evil:1"]}

    with pytest.raises(Refusal, match=r"image--unlisted-choice: 'docker.io/evil:1' isn't allowed"):
        await spawner.run_options_from_form(sent)
    form = " ".join((await spawner.get_options_form()).split())

    assert '[["profile-option-gpu--image--unlisted-choice", "docker.io/evil:1"]]' in form
    said = "Another image: &#39;docker.io/evil:1&#39; isn&#39;t allowed. It must come from quay.io."
    assert said in form
    assert 'role="alert" tabindex="-1" autofocus> <strong>Please check your choices.' in form


async def test_stored_options_that_are_gone_are_reported_and_dropped(hub_with) -> None:
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU])

    for saved in ({"profile": "gone"}, {"profile": "gpu", "gpus": "nine"}, ["gpu"]):
        spawner.user_options = saved
        form = await profiles_of(spawner).form()
        assert "Some of your last choices are no longer offered." in form
    spawner.user_options = {"profile": "gpu"}
    assert "no longer offered" not in await profiles_of(spawner).form()


OF_A_CLOUD = ("Node", node("a", 2, taints=[TAINT], providerID="gce://project/zone/a"))


@pytest.mark.parametrize(
    ("tainted", "word"),
    [(TAINTED, "Not available"), (OF_A_CLOUD, "Perhaps")],
    ids=["", "a pool that may grow"],
)
async def test_a_profile_s_state_counts_what_admission_adds(tainted, word, hub_with) -> None:
    spawner = hub_with(tainted).spawner(profile_list=[GPU])
    assert f"{word}</span>" in await profiles_of(spawner).form()

    hub = hub_with(tainted)
    hub.admission.answer = tolerating

    form = await profiles_of(hub.spawner(profile_list=[GPU])).form()
    assert "Free</span> 2 of 2 free</span>" in form


@pytest.mark.each_hub
@with_dictionaries
async def test_profiles_may_be_a_dictionary(hub_with) -> None:
    hub = hub_with(TWO_GPUS)
    as_list = await hub.spawner(profile_list=[CPU, GPU]).get_options_form()

    assert await hub.spawner(profile_list={"1": CPU, "2": GPU}).get_options_form() == as_list


async def test_a_form_after_a_refused_start_ignores_the_loaded_profile(hub_with) -> None:
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU])
    before = await spawner.get_options_form()

    profiles_of(spawner).begin()
    spawner.user_options = {"profile": "gpu"}
    await spawner.load_user_options()
    assert spawner.extra_resource_limits == {"nvidia.com/gpu": "1"}
    spawner.user_options = {}

    assert await spawner.get_options_form() == before


async def test_a_server_that_does_not_exist_yet_has_nothing_of_a_profile_that_another_has_loaded(
    hub_with,
) -> None:
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU])
    spawner.user.allow_named_servers = True
    profiles = profiles_of(spawner)
    before = await profiles.of("train").states()
    started: asyncio.Future[object] = asyncio.Future()

    profiles.begin()
    spawner.user_options = {"profile": "gpu"}
    await spawner.load_user_options()
    started.set_result(None)
    profiles.end(started)

    assert await profiles.of("train").states() == before


async def test_code_that_has_run_for_another_server_may_still_change_one_that_does_not_exist_yet(
    hub_with,
) -> None:
    """It may add a toleration, say, so nobody knows that there is no room."""

    def tolerates(spawner: Any, _: object) -> None:
        spawner.tolerations = []

    spawner = hub_with(TAINTED).spawner(profile_list=[CPU, GPU], auth_state_hook=tolerates)
    spawner.user.allow_named_servers = True
    profiles, states = profiles_of(spawner), []
    started: asyncio.Future[object] = asyncio.Future()

    async def see() -> None:
        states.append((await profiles.of("train").states())[1]["state"])

    await see()
    spawner._spawn_pending = True
    await see()
    profiles.begin()
    await see()
    started.set_result(None)
    profiles.end(started)
    spawner._spawn_pending = False
    await see()

    assert states == ["unknown"] * 4


async def test_a_server_that_runs_keeps_nothing_of_the_request_that_started_it(hub_with) -> None:
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU])
    spawner.user.allow_named_servers = True
    profiles = profiles_of(spawner)
    started: asyncio.Future[object] = asyncio.Future()
    spawner.handler = Mock()
    request = weakref.ref(spawner.handler)

    profiles.begin()
    spawner.handler = None  # as the hub does after a start
    started.set_result(None)
    profiles.end(started)

    assert request() is None


async def test_the_pod_of_the_default_server_is_not_that_of_one_that_does_not_exist_yet(
    hub_with,
) -> None:
    """An older pod of a server's name ends before it starts, so its GPUs don't count as taken."""
    hub = hub_with(TWO_GPUS)
    spawner = hub.spawner(profile_list=[CPU, GPU], namespace="hub", pod_name="jupyter-alice")
    running = {**pod("jupyter-alice", 2, on="a")}
    running["metadata"] = {**running["metadata"], "namespace": "hub"}
    hub.view.put("Pod", running)

    _, gpu = await profiles_of(spawner).of("train").states()

    assert (gpu["state"], gpu["detail"]) == ("busy", "all 2 are in use")


async def test_a_successful_start_drops_the_copy_kept_for_the_form(hub_with) -> None:
    profiles = profiles_of(hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU]))
    failed, started = (asyncio.Future[object]() for _ in range(2))
    failed.set_exception(ValueError())
    started.set_result(None)

    profiles.begin()
    profiles.end(failed)
    assert profiles._unloaded is not None

    profiles.end(started)
    assert profiles._unloaded is None


WITH_TORCH = ("Node", having(TWO_GPUS[1], "docker.io/library/torch:1"))
WITH_SIDECAR = ("Node", having(TWO_GPUS[1], "torch:1", "sidecar:1"))
SIDECAR = {"extra_containers": [{"name": "sidecar", "image": "sidecar:1"}]}
READY = ">Torch (no download needed)<"


@pytest.mark.parametrize(
    ("objects", "traits", "torch"),
    [
        pytest.param([WITH_TORCH], {}, READY, id="on the only node"),
        pytest.param([WITH_TORCH, ("Node", node("b", 1))], {}, ">Torch<", id="not on another node"),
        pytest.param([WITH_TORCH, ("Pod", pod("x", 2, on="a"))], {}, ">Torch<", id="no room"),
        pytest.param([WITH_TORCH], SIDECAR, ">Torch<", id="without the sidecar's"),
        pytest.param([WITH_SIDECAR], SIDECAR, READY, id="with the sidecar's"),
    ],
)
async def test_an_image_that_every_node_with_room_has_needs_no_download(
    objects, traits, torch, hub_with
) -> None:
    spawner = hub_with(*objects).spawner(profile_list=[CPU, GPU], **traits)

    form = await profiles_of(spawner).form()

    assert torch in form
    assert ">Base<" in form


async def test_an_open_form_takes_back_what_is_no_longer_known_of_an_image(hub_with) -> None:
    hub = hub_with(WITH_TORCH)
    source = profiles_of(hub.spawner(profile_list=[CPU, GPU]))

    async def labels() -> list[str]:
        _, gpu = await source.states()
        return [it["label"] for it in gpu["images"]]

    assert await labels() == ["Base", "Torch (no download needed)"]
    hub.view.put(*TWO_GPUS)
    assert await labels() == ["Base", "Torch"]
    hub.view.put("Node", having(TWO_GPUS[1], "base:1"))
    assert await labels() == ["Base (no download needed)", "Torch"]
    hub.view.now = Stale(99.0, "the API server is gone")
    assert await labels() == ["Base", "Torch"]


async def test_the_default_choices_of_the_default_profile_may_need_no_download_either(
    hub_with,
) -> None:
    with_base = ("Node", having(TWO_GPUS[1], "base:1"))
    form = await profiles_of(hub_with(with_base).spawner(profile_list=[GPU])).form()

    assert ">Base (no download needed)<" in form
    assert ">Torch<" in form

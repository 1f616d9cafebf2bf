"""Profiles before one person: their form with states, and refusals with what fits instead."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gpuspawner import hub
from gpuspawner.admission.slots import TooManyDryRunsError
from gpuspawner.cluster.health import Reading
from gpuspawner.preflight.decision import Refuse, Wait
from tests.unit.preflight.worlds import StillView, node, pod
from tests.unit.profiles.lists import CPU, GPU
from tests.unit.profiles.spawners import ProfileSpawner, StockSpawner, profiles_in, profiles_of

TWO_GPUS = ("Node", node("a", 2))
ONE_TAKEN = ("Pod", pod("somebody-s", 1, on="a"))
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
SAVED: list[dict[str, Any]] = [
    {},
    {"profile": "big"},
    {"profile": "big", "image": "torch", "garbage": ["</script>", {"a": 1}]},
    {"profile": "big", "image--unlisted-choice": "quay.io/<b>"},
]


async def test_where_admission_does_not_answer_it_is_asked_once_a_page() -> None:
    """A webhook that hangs takes all the patience of each question, and profiles are many."""
    asked: list[str] = []

    async def away(namespace: str, _: dict[str, Any]) -> None:
        asked.append(namespace)

    spawner = ProfileSpawner(profile_list=[GPU, {**GPU, "slug": "other"}])
    spawner.dry_run = away  # type: ignore[method-assign]
    profiles = await profiles_of(spawner)

    assert "Not here" in await profiles.form(None, {})
    assert len(asked) == 1


async def test_where_admission_finds_no_turn_the_state_is_unknown_and_not_a_no() -> None:
    turns: list[object] = []

    async def no_turn(*_: object) -> None:
        turns.append(None)
        raise TooManyDryRunsError

    spawner = ProfileSpawner(profile_list=[GPU, {**GPU, "slug": "another", "default": False}])
    spawner.dry_run_for_page = no_turn  # type: ignore[method-assign]

    assert "Not here" not in await (await profiles_of(spawner)).form(None, {})
    assert len(turns) == 1  # each waits for seconds, and no page waits for one after another


@pytest.mark.parametrize("saved", SAVED, ids=str)
async def test_without_devices_the_form_is_kubespawner_s_to_the_last_byte(
    saved: dict[str, Any],
) -> None:
    stock = StockSpawner(profile_list=NO_DEVICES)
    stock.user_options = saved

    profiles = await profiles_of(ProfileSpawner(profile_list=NO_DEVICES), TWO_GPUS)

    assert await profiles.form(None, saved) == stock._options_form_default()


async def test_an_administrator_s_own_template_shows_the_states_too() -> None:
    template = (
        "{% for profile in profile_list %}<article>{{ profile.description }}"
        "{% for option in (profile.profile_options or {}).values() %}"
        "{% for choice in option.choices.values() %}<i>{{ choice.display_name }}</i>{% endfor %}"
        "{% endfor %}</article>{% endfor %}"
    )
    spawner = ProfileSpawner(profile_list=[CPU, GPU], profile_form_template=template)

    form = await (await profiles_of(spawner, TWO_GPUS)).form(None, {})

    assert form.startswith("<article>For <i>courses</i></article>")
    assert "Free</span> 2 of 2 free" in form
    assert "<i>Two (Free: 2 of 2 free)</i><i>Base</i><i>Torch</i>" in form


async def test_each_choice_that_makes_a_difference_has_its_own_state() -> None:
    profiles = await profiles_of(ProfileSpawner(profile_list=[CPU, GPU]), TWO_GPUS, ONE_TAKEN)

    form = await profiles.form(None, {})

    assert ">One (Free: 1 of 2 free)<" in form
    assert ">Two (In use: 1 of 2 free)<" in form
    assert ">Base<" in form
    assert ">Torch<" in form


async def test_words_come_after_the_administrator_s_and_change_none_of_them() -> None:
    listed = [{**GPU, "description": "With <a href='/docs'>a card</a>"}, CPU]
    before = copy.deepcopy(listed)

    form = await (await profiles_of(ProfileSpawner(profile_list=listed), TWO_GPUS)).form(None, {})

    assert "<p>With <a href='/docs'>a card</a><br><span" in form
    assert listed == before


async def test_while_the_cluster_is_being_read_the_form_says_so() -> None:
    view = StillView(TWO_GPUS)
    view.now = Reading(1.0)

    form = await (await profiles_in(view, ProfileSpawner(profile_list=[GPU]))).form(None, {})

    assert "Looking</span> still reading the cluster" in form


async def test_what_was_sent_is_chosen_again_on_every_kubespawner() -> None:
    profiles = await profiles_of(ProfileSpawner(profile_list=[CPU, GPU]), TWO_GPUS)
    sent = {"profile": "gpu", "gpus": "two", "image--unlisted-choice": "quay.io/</script>'"}

    form = " ".join((await profiles.form(hub.Draft(sent), {})).split())

    assert 'value="gpu" checked' in form
    assert 'value="cpu-only" checked' not in form
    assert '<option value="two" selected>' in form
    assert r'--image--unlisted-choice", "quay.io/\u003c/script\u003e\u0027"]]' in form


async def test_what_was_saved_and_is_gone_is_told_and_dropped() -> None:
    profiles = await profiles_of(ProfileSpawner(profile_list=[CPU, GPU]), TWO_GPUS)

    for saved in ({"profile": "gone"}, {"profile": "gpu", "gpus": "nine"}, ["gpu"]):
        form = await profiles.form(None, saved)
        assert "Some of what you chose last time is no longer on offer." in form
    assert "no longer on offer" not in await profiles.form(None, {"profile": "gpu"})


async def test_at_most_three_others_are_named_nearest_first() -> None:
    more = [{**CPU, "display_name": f"<b>No. {number}</b> &amp; more"} for number in range(5)]
    profiles = await profiles_of(ProfileSpawner(profile_list=[GPU, *more]), TWO_GPUS, ONE_TAKEN)

    text, html = await _refused(profiles, {"profile": "gpu", "gpus": "two"})

    assert text == (
        "“GPU server” with “Two” cannot start right now. "
        "You asked for 2 × GPU, and 1 is free right now. "
        "You can start “GPU server” with “One”, “No. 0 & more” or “No. 1 & more” instead."
    )
    assert "“No. 0 &amp; more”" in html


async def test_where_nothing_else_fits_a_refusal_says_what_can_be_done() -> None:
    profiles = await profiles_of(ProfileSpawner(profile_list=[GPU]), TWO_GPUS, ONE_TAKEN, TAKEN_TOO)

    text, _ = await _refused(profiles, {})

    assert text == (
        "“GPU server” with “One” cannot start right now. "
        "No GPU is free right now: all 2 are in use. Please try again a little later."
    )


TAKEN_TOO = ("Pod", pod("another", 1, on="a"))


async def _refused(profiles: Any, options: dict[str, Any]) -> tuple[str, str]:
    chosen = profiles.choose(options)
    decision = profiles._preflight.check(await profiles.ask(chosen))
    assert isinstance(decision, Refuse)
    message, on_form = await profiles.teller(chosen)(decision)
    assert on_form.message == message
    return message.text, str(message.html)


async def test_a_pool_that_a_profile_says_can_grow_is_waited_for() -> None:
    grows = {**GPU, "scale_up": {"max_nodes": 2, "minutes": 8}}
    spawner = ProfileSpawner(profile_list=[grows])

    for nodes in ([], [TWO_GPUS, ONE_TAKEN, TAKEN_TOO]):
        profiles = await profiles_of(spawner, *nodes)

        assert "New machine</span> ready in about 8 minutes" in await profiles.form(None, {})
        decision = profiles._preflight.check(await profiles.ask(profiles.choose({})))
        assert isinstance(decision, Wait)
    full = await profiles_of(spawner, TWO_GPUS, ONE_TAKEN, TAKEN_TOO, ("Node", node("b", 0)))
    assert "In use" in await full.form(None, {})


async def test_a_profile_s_node_affinity_says_which_nodes_are_its_pool() -> None:
    term = {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["a100"]}]}
    by_affinity = {"extra_resource_limits": {"nvidia.com/gpu": "1"}}
    grows = {
        "display_name": "GPU",
        "kubespawner_override": {**by_affinity, "node_affinity_required": [term]},
        "scale_up": {"max_nodes": 1, "minutes": 8},
    }
    others = [("Node", {**node(f"cpu-{n}", 0), "metadata": {"name": f"cpu-{n}"}}) for n in range(3)]

    form = await (await profiles_of(ProfileSpawner(profile_list=[grows]), *others)).form(None, {})

    assert "New machine" in form


async def test_what_admission_adds_counts_for_the_state_of_a_profile() -> None:
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    spawner = ProfileSpawner(profile_list=[GPU])
    tainted = ("Node", node("a", 2, taints=[taint]))
    assert "Not here</span>" in await (await profiles_of(spawner, tainted)).form(None, {})

    async def tolerating(_: str, sent: dict[str, Any]) -> dict[str, Any]:
        toleration = {"key": "nvidia.com/gpu", "operator": "Exists"}
        return {**sent, "spec": {**sent["spec"], "tolerations": [toleration]}}

    spawner.dry_run = tolerating

    assert "Free</span> </span>" in await (await profiles_of(spawner, tainted)).form(None, {})

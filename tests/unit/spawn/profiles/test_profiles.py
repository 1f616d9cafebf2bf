"""Profiles offered to one user: the form with states, and refusals with alternatives."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import kubespawner
import pytest
from jupyterhub.utils import maybe_future
from tornado import web

from gpuspawner.admission.dry_runs import TooManyDryRunsError
from gpuspawner.cluster.health import Reading
from gpuspawner.kube.objects import Manifest
from gpuspawner.preflight.decision import Refuse, Wait
from gpuspawner.spawn import drafts
from gpuspawner.spawn.profiles.profiles import Profiles
from gpuspawner.spawn.refusal import Refusal
from tests.unit.preflight.worlds import node, pod
from tests.unit.spawn.hubs import StillHub
from tests.unit.spawn.profiles.lists import CPU, GPU

HubWith = Callable[..., StillHub]

TWO_GPUS = ("Node", node("a", 2))
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TAINTED = ("Node", node("a", 2, taints=[TAINT]))
ONE_TAKEN = ("Pod", pod("somebody-s", 1, on="a"))
TAKEN_TOO = ("Pod", pod("another", 1, on="a"))
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


def tolerating(sent: Manifest) -> Manifest:
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists"}
    return {**sent, "spec": {**sent["spec"], "tolerations": [toleration]}}


def profiles_of(spawner: Any) -> Profiles:
    source = spawner.gates.source
    assert isinstance(source, Profiles)
    return source


async def test_a_page_asks_admission_once_if_it_does_not_answer(hub_with: HubWith) -> None:
    """If a webhook hangs, each question takes its full timeout, and there are many profiles."""
    hub = hub_with()
    spawner = hub.spawner(profile_list=[GPU, {**GPU, "slug": "other"}])

    assert "Not available" in await profiles_of(spawner).form()
    assert len(hub.admission.asked) == 1


async def test_too_many_dry_runs_make_the_state_unknown(
    hub_with: HubWith,
) -> None:
    def no_turn(_: Manifest) -> None:
        raise TooManyDryRunsError

    hub = hub_with()
    hub.admission.answer = no_turn
    spawner = hub.spawner(profile_list=[GPU, {**GPU, "slug": "another", "default": False}])

    assert "Not available" not in await profiles_of(spawner).form()
    assert (
        len(hub.admission.asked) == 1
    )  # each waits for seconds, too long for a page to wait for several


@pytest.mark.parametrize("saved", SAVED, ids=str)
async def test_without_devices_the_form_is_exactly_kubespawner_s(
    saved: dict[str, Any], hub_with: HubWith
) -> None:
    hub = hub_with(TWO_GPUS)
    stock = hub.stock_spawner(profile_list=NO_DEVICES)
    spawner = hub.spawner(profile_list=NO_DEVICES)
    stock.user_options = spawner.user_options = saved

    assert await profiles_of(spawner).form() == stock._options_form_default()


async def test_an_administrator_s_own_template_shows_the_states_too(hub_with: HubWith) -> None:
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


async def test_each_choice_that_makes_a_difference_has_its_own_state(hub_with: HubWith) -> None:
    spawner = hub_with(TWO_GPUS, ONE_TAKEN).spawner(profile_list=[CPU, GPU])

    form = await profiles_of(spawner).form()

    assert ">One (Free: 1 of 2 free)<" in form
    assert ">Two (In use: 1 of 2 free)<" in form
    assert ">Base<" in form
    assert ">Torch<" in form


async def test_availability_is_added_after_the_administrator_s_text(
    hub_with: HubWith,
) -> None:
    listed = [{**GPU, "description": "With <a href='/docs'>a card</a>"}, CPU]
    before = copy.deepcopy(listed)

    form = await profiles_of(hub_with(TWO_GPUS).spawner(profile_list=listed)).form()

    assert "<p>With <a href='/docs'>a card</a><br><span" in form
    assert listed == before


async def test_the_form_says_that_the_cluster_is_being_read(hub_with: HubWith) -> None:
    hub = hub_with(TWO_GPUS)
    hub.view.now = Reading(1.0)

    form = await profiles_of(hub.spawner(profile_list=[GPU])).form()

    assert "Checking</span> still reading the cluster" in form


async def test_a_redrawn_form_keeps_the_choices_on_every_kubespawner(hub_with: HubWith) -> None:
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU])
    drafts.keep(
        {"profile": "gpu", "gpus": "two", "image--unlisted-choice": "quay.io/</script>'"},
    )

    form = " ".join((await profiles_of(spawner).form()).split())

    assert 'value="gpu" checked' in form
    assert 'value="cpu-only" checked' not in form
    assert '<option value="two" selected>' in form
    assert r'--image--unlisted-choice", "quay.io/\u003c/script\u003e\u0027"]]' in form


async def test_stored_options_that_are_gone_are_reported_and_dropped(hub_with: HubWith) -> None:
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU])

    for saved in ({"profile": "gone"}, {"profile": "gpu", "gpus": "nine"}, ["gpu"]):
        spawner.user_options = saved
        form = await profiles_of(spawner).form()
        assert "Some of your last choices are no longer offered." in form
    spawner.user_options = {"profile": "gpu"}
    assert "no longer offered" not in await profiles_of(spawner).form()


async def test_a_refusal_names_at_most_three_alternatives_nearest_first(hub_with: HubWith) -> None:
    more = [{**CPU, "display_name": f"<b>No. {number}</b> &amp; more"} for number in range(5)]
    hub = hub_with(TWO_GPUS, ONE_TAKEN)

    text, html = await _refused(hub, [GPU, *more], {"profile": "gpu", "gpus": "two"})

    assert text == (
        "“GPU server” with “Two” can't start right now. "
        "You asked for 2 × GPU, but only 1 is free right now. "
        "You can start one of these instead: "
        "“GPU server” with “One”; “No. 0 & more”; “No. 1 & more”."
    )
    assert "“No. 0 &amp; more”" in html


async def test_a_refusal_without_alternatives_says_what_to_do(hub_with: HubWith) -> None:
    text, _ = await _refused(hub_with(TWO_GPUS, ONE_TAKEN, TAKEN_TOO), [GPU], {})

    assert text == (
        "“GPU server” with “One” can't start right now. "
        "No GPU is free right now: all 2 are in use. Please try again a little later."
    )


async def _refused(
    hub: StillHub, listed: list[dict[str, Any]], options: dict[str, Any]
) -> tuple[str, str]:
    spawner = hub.spawner(profile_list=listed)
    choice = await profiles_of(spawner).resolve(options)
    decision = hub.runtime(spawner).preflight.check(choice.proposal)
    assert isinstance(decision, Refuse)
    message, on_form = await choice.explain(decision, hub.admission)
    assert on_form.message == message
    return message.text, str(message.html)


async def test_a_start_waits_for_a_profile_s_pool_that_can_grow(hub_with: HubWith) -> None:
    grows = {**GPU, "scale_up": {"max_nodes": 2, "minutes": 8}}

    for objects in ([], [TWO_GPUS, ONE_TAKEN, TAKEN_TOO]):
        hub = hub_with(*objects)
        spawner = hub.spawner(profile_list=[grows])

        form = await profiles_of(spawner).form()
        assert "New machine</span> takes about 8 minutes to start" in form
        choice = await profiles_of(spawner).resolve({})
        assert isinstance(hub.runtime(spawner).preflight.check(choice.proposal), Wait)
    full = hub_with(TWO_GPUS, ONE_TAKEN, TAKEN_TOO, ("Node", node("b", 0)))
    assert "In use" in await profiles_of(full.spawner(profile_list=[grows])).form()


async def test_a_profile_s_node_affinity_selects_its_pool(hub_with: HubWith) -> None:
    term = {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["a100"]}]}
    by_affinity = {"extra_resource_limits": {"nvidia.com/gpu": "1"}}
    grows = {
        "display_name": "GPU",
        "kubespawner_override": {**by_affinity, "node_affinity_required": [term]},
        "scale_up": {"max_nodes": 1, "minutes": 8},
    }
    others = [("Node", {**node(f"cpu-{n}", 0), "metadata": {"name": f"cpu-{n}"}}) for n in range(3)]

    form = await profiles_of(hub_with(*others).spawner(profile_list=[grows])).form()

    assert "New machine" in form


async def test_a_profile_s_state_counts_what_admission_adds(hub_with: HubWith) -> None:
    spawner = hub_with(TAINTED).spawner(profile_list=[GPU])
    assert "Not available</span>" in await profiles_of(spawner).form()

    hub = hub_with(TAINTED)
    hub.admission.answer = tolerating

    assert "Free</span> </span>" in await profiles_of(hub.spawner(profile_list=[GPU])).form()


# An administrator's function in place of a list


@pytest.mark.parametrize("kind", ["plain", "coroutine", "returns a coroutine", "object"])
async def test_a_gate_that_waits_calls_a_function_once(kind: str, hub_with: HubWith) -> None:
    done = []

    def plain(_: object) -> list[Any]:
        done.append("called")
        return [GPU]

    async def coroutine(spawner: object) -> list[Any]:
        await asyncio.sleep(0)
        return plain(spawner)

    def returns_a_coroutine(spawner: object) -> Any:
        return coroutine(spawner)

    class Function:
        async def __call__(self, spawner: object) -> list[Any]:
            return await coroutine(spawner)

    functions: dict[str, Any] = {
        "plain": plain,
        "coroutine": coroutine,
        "returns a coroutine": returns_a_coroutine,
        "object": Function(),
    }
    hub = hub_with(TAINTED)
    hub.admission.answer = tolerating
    spawner = hub.spawner(profile_list=functions[kind])

    rest = spawner.run_pre_spawn_hook()
    assert hub.admission.asked == []
    await rest
    await asyncio.sleep(0)  # lets leftover tasks run

    assert done == ["called"]
    assert len(hub.admission.asked) == 1
    assert spawner.gates.attempt is not None


async def test_an_administrator_s_http_error_passes_unchanged(hub_with: HubWith) -> None:
    def not_for_you(_: object) -> list[dict[str, Any]]:
        raise web.HTTPError(403, "Only for members of the course")

    spawner = hub_with(TWO_GPUS).spawner(profile_list=not_for_you)

    with pytest.raises(web.HTTPError, match="Only for members"):
        await spawner.draw_form()


async def test_a_failing_function_is_reported_and_logged(
    hub_with: HubWith, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_: object) -> list[dict[str, Any]]:
        raise LookupError("the directory of courses")

    with pytest.raises(Refusal, match="an error in the hub's configuration"):
        await hub_with(TWO_GPUS).spawner(profile_list=fails).draw_form()
    assert "LookupError: the directory of courses" in caplog.text


@pytest.mark.skipif(
    kubespawner.version_info < (7, 1), reason="version: KubeSpawner 7.1 brought dictionaries"
)
async def test_profiles_may_be_a_dictionary(hub_with: HubWith) -> None:
    hub = hub_with(TWO_GPUS)
    as_list = await hub.spawner(profile_list=[CPU, GPU]).draw_form()

    assert await hub.spawner(profile_list={"1": CPU, "2": GPU}).draw_form() == as_list


# The form that the hub redraws after a start


async def test_a_form_after_a_refused_start_ignores_the_loaded_profile(
    hub_with: HubWith,
) -> None:
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU])
    before = await spawner.draw_form()

    profiles_of(spawner).begin()
    spawner.user_options = {"profile": "gpu"}
    await spawner.load_user_options()
    assert spawner.extra_resource_limits == {"nvidia.com/gpu": "1"}
    spawner.user_options = {}

    assert await spawner.draw_form() == before


async def test_a_successful_start_drops_the_copy_kept_for_the_form(
    hub_with: HubWith,
) -> None:
    profiles = profiles_of(hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU]))
    started: asyncio.Future[object] = asyncio.Future()

    profiles.begin()
    started.set_exception(ValueError())
    profiles.end(started)
    assert profiles._unloaded is not None

    started = asyncio.Future()
    started.set_result(None)
    profiles.end(started)
    assert profiles._unloaded is None


async def test_options_that_a_hook_adds_are_not_stored(
    hub_with: HubWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def made(*_: object) -> bool:
        return True

    def add(spawner: Any) -> None:
        spawner.user_options["team"] = "physics"

    monkeypatch.setattr(kubespawner.KubeSpawner, "_make_create_pod_request", made)
    spawner = hub_with(TWO_GPUS).spawner(profile_list=[CPU, GPU], pre_spawn_hook=add)
    spawner.user_options = {"profile": "gpu"}
    await maybe_future(spawner.run_pre_spawn_hook())

    await spawner.load_user_options()
    await spawner._make_create_pod_request(await spawner.get_pod_manifest(), 3)

    assert spawner.user_options == {"profile": "gpu"}

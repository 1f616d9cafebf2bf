"""How often open forms of profiles ask admission, and what they show if they can't."""

from __future__ import annotations

from typing import Any

import pytest
from kubespawner import KubeSpawner

from gpuspawner import GPUSpawner
from gpuspawner.kube.objects import convert
from gpuspawner.preflight.dry_runs import DryRuns, TooManyDryRunsError
from tests.unit.makers.hubs import named, tolerating
from tests.unit.makers.profile_clusters import ONE_TAKEN, TAINTED, TWO_GPUS, profiles_of
from tests.unit.makers.profile_lists import CPU, GPU
from tests.unit.makers.translating import Pseudo, speaking
from tests.unit.makers.worlds import node, pod


@pytest.fixture
def drawings(monkeypatch) -> list[str]:
    """Collects the forms that KubeSpawner draws."""
    forms: list[str] = []
    render = KubeSpawner._render_options_form

    def counted(self: Any, profiles: Any) -> str:
        forms.append(render(self, profiles))
        return forms[-1]

    monkeypatch.setattr(KubeSpawner, "_render_options_form", counted)
    return forms


async def test_pages_that_show_the_same_are_drawn_once(hub_with, drawings) -> None:
    hub = hub_with(TWO_GPUS)

    pages = [await profiles_of(hub.spawner(profile_list=[CPU, GPU])).form() for _ in range(2)]

    assert pages[0] == pages[1]
    assert len(drawings) == 1


async def test_a_page_shows_a_new_state_at_once(hub_with, drawings) -> None:
    hub = hub_with(TWO_GPUS)
    before = await profiles_of(hub.spawner(profile_list=[CPU, GPU])).form()

    hub.view.state.put(convert(*ONE_TAKEN))
    after = await profiles_of(hub.spawner(profile_list=[CPU, GPU])).form()

    assert ">Two (Free: 2 of 2 free)<" in before
    assert ">Two (In use: 1 of 2 free)<" in after
    assert len(drawings) == 2


@pytest.mark.parametrize(
    ("traits", "last"),
    [
        ({"profile_form_template": "{{ profile_list | length }}"}, {}),
        ({"profile_list": [GPU]}, {}),
        ({}, {"profile": "gpu", "gpus": "two"}),
    ],
    ids=["a template", "a list", "last choices"],
)
async def test_pages_that_show_something_else_are_drawn_anew(
    traits, last, hub_with, drawings
) -> None:
    hub = hub_with(TWO_GPUS)
    await profiles_of(hub.spawner(profile_list=[CPU, GPU])).form()

    spawner = hub.spawner(**{"profile_list": [CPU, GPU], **traits})
    spawner.user_options = last
    await profiles_of(spawner).form()

    assert len(drawings) == 2


async def test_a_page_that_was_drawn_in_one_language_is_not_shown_in_another(hub_with) -> None:
    hub = hub_with(TWO_GPUS)

    english = await profiles_of(hub.spawner(profile_list=[CPU, GPU])).form()
    with speaking("x", Pseudo()):
        other = await profiles_of(hub.spawner(profile_list=[CPU, GPU])).form()

    assert ("⟦" in english, "⟦" in other) == (False, True)


async def test_a_class_that_draws_for_itself_draws_each_page(hub_with, drawings) -> None:
    class Greeting(GPUSpawner):
        def _get_initialized_profile_list(self, profile_list: Any) -> Any:
            return super()._get_initialized_profile_list(profile_list)

    hub = hub_with(TWO_GPUS)
    for _ in range(2):
        await profiles_of(hub.spawner(Greeting, profile_list=[CPU, GPU])).form()

    assert len(drawings) == 2


ONE = {**GPU, "profile_options": {}}
SMALL = {**CPU, "kubespawner_override": {"cpu_guarantee": 1}}
GROWING = ("Node", node("a", 1, providerID="gce://project/zone/a"))
ALL_CPU = {"name": "n", "resources": {"requests": {"cpu": "64"}, "limits": {}}}


def tolerating_by_name(of: Any) -> Any:
    made = tolerating(of)
    key = {"key": "team", "operator": "Equal", "value": of["metadata"]["name"]}
    return {**made, "spec": {**made["spec"], "tolerations": [*made["spec"]["tolerations"], key]}}


def counting(hub: Any, spawner: Any) -> list[float]:
    """Let the dry runs of a hub go by a clock, which is returned."""
    now = [1000.0]
    hub.runtime(spawner).dry_runs = DryRuns(hub.admission, clock=lambda: now[0])
    return now


@pytest.mark.parametrize("answer", [tolerating, tolerating_by_name])
async def test_open_forms_of_two_people_ask_once_each(hub_with, answer) -> None:
    hub = hub_with(TAINTED)
    hub.admission.answer = answer
    ann, bob = (named(hub.spawner(profile_list=[ONE]), name) for name in ("ann", "bob"))
    now = counting(hub, ann)

    for _ in range(20):
        now[0] += 11
        for spawner in (ann, bob):
            assert (await profiles_of(spawner).states())[0]["detail"] == "2 of 2 free"

    assert len(hub.admission.asked) <= 3


def labelling(spawner: Any, made: Any) -> Any:
    made.metadata.labels["owner"] = spawner.user.name
    return made


async def test_what_is_learned_of_others_does_not_make_open_forms_ask_again(hub_with) -> None:
    hub = hub_with(TAINTED)
    hub.admission.answer = tolerating
    ann: Any = named(hub.spawner(profile_list=[ONE], modify_pod_hook=labelling), "ann")
    now, placements = counting(hub, ann), hub.runtime(ann).preflight.learned.placements

    for n in range(20):
        now[0] += 11
        await profiles_of(ann).states()
        placements.learn((("gpu", ""), f"student-{n}"), pod("a"), pod("a"), None)

    assert len(hub.admission.asked) <= 3


async def test_that_nodes_may_come_is_shown_without_an_answer_of_admission(hub_with) -> None:
    def no_turn(_: object) -> Any:
        raise TooManyDryRunsError

    full = ("Pod", pod("x", 0, on="a", containers=[ALL_CPU]))
    asked, silent = hub_with(GROWING, full), hub_with(GROWING, full)
    silent.admission.answer = no_turn

    [shown], [known] = [
        await profiles_of(named(hub.spawner(profile_list=[SMALL]), "ann")).states()
        for hub in (asked, silent)
    ]

    assert shown["state"] == known["state"] == "may-scale-up"

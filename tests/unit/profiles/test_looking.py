"""How often open forms of profiles ask admission, and what they show if they can't."""

from __future__ import annotations

from typing import Any

import pytest

from gpuspawner.preflight.dry_runs import DryRuns, TooManyDryRunsError
from tests.unit.makers.hubs import named, tolerating
from tests.unit.makers.profile_clusters import TAINTED, profiles_of
from tests.unit.makers.profile_lists import CPU, GPU
from tests.unit.makers.worlds import node, pod

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
        placements.learn((("gpu", ""), f"student-{n}"), pod("a"), pod("a"))

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

"""A restarted hub knows which starts it has cut, and where their pods are."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from gpuspawner.launch.trouble import Kind
from gpuspawner.queue.kept import KeptPlace, Wish
from gpuspawner.queue.rules import QueueRules
from tests.unit.spawn.restarts import kind, pod, stop

pytestmark = pytest.mark.each_python


def test_a_start_whose_pod_was_sent_is_cut_by_a_restart_of_the_hub(after_restart) -> None:
    after_restart(runs=True).gates.endings.send()
    restarted = after_restart(runs=True)

    assert restarted.gates.endings.polled(1, None) == 1
    stop(restarted)

    assert kind(restarted) is Kind.HUB_RESTARTED


async def test_a_start_that_has_begun_is_cut_by_a_restart_of_the_hub(after_restart) -> None:
    spawner = after_restart(runs=True)
    spawner._start_pending = True
    await spawner.run_auth_state_hook(None)

    stop(restarted := after_restart(runs=True))

    assert kind(restarted) is Kind.HUB_RESTARTED


async def test_a_form_begins_no_start(after_restart) -> None:
    spawner = after_restart(runs=False)

    await spawner.run_auth_state_hook(None)

    assert "gpuspawner" not in spawner.get_state()


async def test_a_start_that_was_noted_when_it_began_needs_no_commit_to_send_its_pod(
    after_restart, monkeypatch
) -> None:
    spawner, commits = after_restart(runs=True), []
    monkeypatch.setattr("gpuspawner.compat.jupyterhub.store_state", commits.append)
    spawner._start_pending = True
    await spawner.run_auth_state_hook(None)

    spawner.gates.endings.send()

    assert not commits


async def test_a_start_that_begins_leaves_what_kubespawner_has_stored(after_restart) -> None:
    spawner = after_restart(runs=True)
    row: Any = spawner.orm_spawner
    row.state = {"pod_name": "jupyter-alice-of-6"}  # KubeSpawner 6 wrote no version
    spawner._start_pending = True

    await spawner.run_auth_state_hook(None)

    assert row.state.keys() == {"pod_name", "gpuspawner"}
    assert row.state["pod_name"] == "jupyter-alice-of-6"


async def test_where_a_pod_is_sent_is_stored_if_a_hook_has_changed_it(after_restart) -> None:
    spawner = after_restart(runs=True)
    row: Any = spawner.orm_spawner
    spawner._start_pending = True
    await spawner.run_auth_state_hook(None)
    spawner.namespace = "of-a-hook"

    spawner.gates.endings.send()

    assert row.state["namespace"] == "of-a-hook"
    assert row.state["gpuspawner"].keys() == {"began"}


async def test_a_form_that_is_opened_while_a_server_starts_or_runs_begins_no_start(
    after_restart,
) -> None:
    spawner = after_restart(runs=True)
    row: Any = spawner.orm_spawner
    spawner._start_pending, row.started = True, datetime(2026, 11, 25)  # noqa: DTZ001, as the hub

    await spawner.run_auth_state_hook(None)

    assert "gpuspawner" not in spawner.get_state()


async def test_a_start_that_goes_on_in_line_after_a_restart_is_not_cut_by_another_one(
    after_restart,
) -> None:
    first = after_restart(runs=True)
    first.gates._runtime.queue = QueueRules(is_on=True)
    first.gates.endings.wait(KeptPlace(1.0, Wish.ANYWAY))
    resumed = after_restart(runs=True)
    resumed._start_pending = True

    await resumed.run_auth_state_hook(None)
    stop(again := after_restart(runs=True))

    assert kind(again) is None


def test_a_start_that_waits_in_line_is_not_cut_until_it_sends_its_pod(after_restart) -> None:
    spawner = after_restart(runs=True)
    spawner._start_pending = True
    place = KeptPlace(1.0, Wish.ANYWAY)
    spawner.gates.endings.begin()
    spawner.gates.endings.wait(place)
    stop(restarted := after_restart(runs=True))
    assert kind(restarted) is None

    spawner.gates.endings.begin()
    spawner.gates.endings.wait(place)
    spawner.gates.endings.send()
    stop(restarted := after_restart(runs=True))

    assert kind(restarted) is Kind.HUB_RESTARTED


def test_a_start_that_a_restarted_hub_finds_up_is_not_cut(after_restart) -> None:
    after_restart(runs=True).gates.endings.send()
    restarted = after_restart(runs=True)
    restarted.gates.endings.answers()
    assert kind(restarted) is None

    again = after_restart(runs=True)
    again.gates.endings.polled(1, pod("EvictionByEvictionAPI"))
    stop(again)

    assert kind(again) is Kind.EVICTED


def test_others_in_line_wait_no_longer_for_a_start_that_a_restarted_hub_finds_up(
    after_restart,
) -> None:
    """Its place was stored until it was up, and the hub ended in between."""
    first = after_restart(runs=True)
    kept = first.gates._runtime.kept_places
    first.gates._runtime.queue = QueueRules(is_on=True)
    first.gates.endings.wait(KeptPlace(1.0, Wish.ANYWAY))
    restarted = after_restart(runs=True)
    assert kept.are_awaited

    restarted.gates.endings.answers()

    assert not kept.are_awaited
    after_restart(runs=True)
    assert not kept.are_awaited  # nor does the next hub find a place


def test_a_start_that_ended_before_the_restart_is_not_cut(after_restart) -> None:
    spawner = after_restart(runs=True)
    spawner.gates.endings.send()

    stop(after_restart(runs=False))

    assert kind(spawner) is None

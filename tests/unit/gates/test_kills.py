"""Whatever is in the database when the hub is killed, the next hubs make the right thing of it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gpuspawner.cluster.health import Live, Reading
from gpuspawner.messages import Message
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.kills import MortalHub, Row
from tests.unit.makers.restarts import pod

pytestmark = pytest.mark.usefixtures("clock")

WAITS = {"accelerator": "a100", "gpus": 1, "wait": True}
CALM = {**WAITS, "wait": False}
MOST_KILLS = 2
Act = Callable[[MortalHub, pytest.MonkeyPatch], Awaitable[None]]


async def leaves(hub: MortalHub, _: object) -> None:
    await hub.post(WAITS)
    assert hub.is_in_line
    hub.facts.add("given up")
    hub.spawner.gpuspawner_gates.turn.leave()
    await asyncio.sleep(9)


async def has_its_turn(hub: MortalHub) -> None:
    await hub.post(WAITS)
    hub.still.view.remove_pod("x")
    await asyncio.sleep(9)


async def loses_its_pod(hub: MortalHub) -> None:
    await has_its_turn(hub)
    assert hub.spawner.ready
    hub.spawner.gpuspawner_gates.server_state.farewell(pod("EvictionByEvictionAPI"))
    hub.pods.clear()
    hub.facts.add("evicted")
    await hub.spawner.poll()


async def is_evicted(hub: MortalHub, _: object) -> None:
    await loses_its_pod(hub)
    assert hub.rows[-1].ending == "evicted"
    await hub.user.stop("")


async def fails(hub: MortalHub, patch: pytest.MonkeyPatch) -> None:
    async def failing(*_: object) -> None:
        hub.facts.add("given up")
        raise Refusal(Message.of("It fails."), reason="bad-image")

    patch.setattr("gpuspawner.launch.run.until_reachable", failing)
    await has_its_turn(hub)
    assert "given up" in hub.facts


async def is_refused(hub: MortalHub, _: object) -> None:
    assert await hub.post(CALM) == 500
    hub.facts.add("given up")


ACTS = (leaves, is_evicted, fails, is_refused)


@pytest.mark.parametrize("act", ACTS)
async def test_nothing_is_lost_and_nothing_comes_back_wherever_hubs_are_killed(
    monkeypatch, act
) -> None:
    first = MortalHub(monkeypatch, Row())
    await act(first, monkeypatch)
    await first.end()
    left, seen = first.rows, set[str]()
    for _ in range(MOST_KILLS):
        found, left = left, []
        for row in found:
            kept = str((row._replace(state=None), bool(row.state), row.place, row.ending))
            if kept not in seen:
                seen.add(kept)
                left += await after(monkeypatch, row)
                if row.has_server:
                    await without_a_line(monkeypatch, row)
                if row.place and not row.pods:
                    await by_owner(monkeypatch, row)


async def test_who_is_renamed_before_the_hub_puts_them_back_in_line_keeps_the_place(
    monkeypatch,
) -> None:
    first = MortalHub(monkeypatch, Row())
    await first.post(WAITS)
    await first.end()
    row = next(it for it in first.rows if it.place)
    hub = MortalHub(monkeypatch, row)
    hub.still.view.now = Reading(1.0)
    begun = asyncio.create_task(hub.begin())
    await asyncio.sleep(9)

    hub.user.name = "eve"
    hub.user.db.commit()
    hub.still.view.now = Live(0.5)
    await begun

    assert hub.is_in_line
    assert hub.rows[-1].place == row.place
    await hub.end()


async def after(patch: pytest.MonkeyPatch, row: Row) -> list[Row]:
    """Check what a hub makes of a row; return what is in the database after each of its commits."""
    hub = MortalHub(patch, row)
    await hub.begin()
    assert hub.spawner.ready == bool(row.pods)
    assert hub.is_in_line == (row.place is not None and not row.pods)
    assert not ("given up" in row.facts and hub.is_in_line)
    assert row.place is None or row.options != WAITS
    if not row.pods:
        assert all(it.place == row.place for it in hub.rows)
        assert not row.ending or {it.ending for it in hub.rows} == {row.ending}
        assert hub.rows[-1].ending in (row.ending, "hub-restarted")
    if row.state:
        assert all(it.of_kubespawner == row.of_kubespawner for it in hub.rows)
    await hub.end()
    return hub.rows[1:]


async def without_a_line(patch: pytest.MonkeyPatch, row: Row) -> None:
    """Check that a hub without a line forgets the place, and tells nothing wrong."""
    hub = MortalHub(patch, row, queue=False)
    await hub.begin()
    last = hub.rows[-1]
    assert not hub.is_in_line
    assert last.place is None
    assert last.ending in (row.ending if not row.pods else "", "hub-restarted")
    await hub.end()


async def by_owner(patch: pytest.MonkeyPatch, row: Row) -> None:
    """Check that owners who start before the hub does it keep their place, if they still wait."""
    hub = MortalHub(patch, row)
    await hub.check()
    await hub.post(WAITS)
    assert all(it.place == row.place for it in hub.rows)
    await hub.end()

    hub = MortalHub(patch, row)
    await hub.check()
    hub.still.view.remove_pod("x")
    await hub.post(CALM)
    assert hub.spawner.ready
    assert not any(it.place for it in hub.rows if it.pods)
    await hub.end()

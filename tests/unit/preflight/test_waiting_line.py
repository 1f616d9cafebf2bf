"""The line on the live view: who is called, and who stays."""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from typing import Any

import pytest

from gpuspawner.cluster.health import Reading
from gpuspawner.preflight import fronts
from gpuspawner.preflight.decision import Reason, Refuse, Start, UnknownRules
from gpuspawner.queue.kept import KeptPlace, KeptPlaces, Wish
from tests.unit.preflight.line_stage import FULL, Stage
from tests.unit.preflight.worlds import node, pod, proposal, settle

pytestmark = pytest.mark.each_python


def named(name: str, gpus: int) -> Any:
    """A node with its name as a label, as kubelets set it."""
    plain: Any = node(name, gpus)
    plain["metadata"]["labels"]["kubernetes.io/hostname"] = name
    return plain


@pytest.fixture
def stage() -> Stage:
    return Stage(*FULL)


async def test_who_is_called_has_a_reservation_in_the_same_tick(stage: Stage) -> None:
    with stage.joining("ann") as ann, stage.joining("bob", since=2.0) as bob:
        await settle()
        assert not ann.done()

        stage.view.remove_pod("x")
        await settle()

        assert ann.result() == ()
        assert stage.preflight.reservations.find(proposal("ann").key) is not None
        assert not bob.done()
        assert stage.line.places_of("ann") == 0
        assert stage.line.standing(stage.ticket("bob", since=2.0)).place == 1


async def test_a_newcomer_is_refused_behind_those_in_line_but_not_who_was_called(
    stage: Stage,
) -> None:
    with stage.joining("two", 2), stage.joining("ann", since=2.0):
        stage.view.remove_pod("x")
        await settle()
        decision = stage.preflight.check(proposal("new"))
        assert isinstance(decision, Refuse)
        assert (decision.reason, decision.in_line) == (Reason.BUSY, 2)

        stage.view.remove_pod("y")
        await settle()

        assert isinstance(stage.preflight.check(proposal("two", 2)), Start)
        decision = stage.preflight.check(proposal("new"))
        assert isinstance(decision, Refuse)
        assert decision.in_line == 1


async def test_nobody_is_called_while_the_view_isnt_live_and_nobody_loses_a_place(
    stage: Stage,
) -> None:
    with stage.joining("ann") as ann:
        stage.view.now, live = Reading(0), stage.view.now
        stage.view.remove_pod("x")
        await settle()
        assert not ann.done()
        assert len(stage.line) == 1

        stage.view.now = live
        stage.view.wake()
        await settle()

        assert ann.done()


async def test_who_leaves_makes_room_for_the_next(stage: Stage) -> None:
    first = ExitStack()
    first.enter_context(stage.joining("two", 2))
    with stage.joining("ann", since=2.0) as ann:
        stage.view.remove_pod("x")
        await settle()
        assert not ann.done()  # the node is kept for the first

        first.close()
        stage.view.wake()
        await settle()

        assert ann.done()


async def test_a_node_is_kept_for_a_server_that_fits_only_where_another_waits() -> None:
    """It waits for all nodes that it could use, not only for those on which it fits now."""
    stage = Stage(
        ("Node", named("large", 4)),
        ("Pod", pod("x", 2, on="large")),
        ("Node", named("small", 2)),
        ("Pod", pod("y", 2, on="small")),
    )
    with (
        stage.joining("four", 4) as four,
        stage.joining("two", 2, since=2.0) as two,
        stage.joining("one", 1, since=3.0) as one,
    ):
        await settle()
        stage.view.put("Pod", pod("y", 1, on="small"))
        await settle()
        assert not any(it.done() for it in (four, two, one))

        stage.view.remove_pod("y")
        await settle()

        assert (four.done(), two.done(), one.done()) == (False, True, False)


async def test_who_is_kept_off_a_node_is_called_only_if_others_surely_leave_the_rest() -> None:
    stage = Stage(
        ("Node", named("large", 4)),
        ("Pod", pod("x", 2, on="large")),
        ("Node", named("small", 1)),
    )
    promised = proposal("promised")  # it may go to either node
    assert isinstance(await stage.preflight.begin(promised), Start)
    with stage.joining("four", 4) as four, stage.joining("one", since=2.0) as one:
        await settle()
        assert not one.done()

        stage.preflight.reservations.send(promised.key)
        stage.view.put("Pod", pod("promised", 1, on="large"))
        await settle()

        assert (four.done(), one.done()) == (False, True)
        assert one.result() == ("large",)


async def test_who_can_never_start_any_more_is_called_to_be_told_so(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fronts, "UNSURE_SECONDS", 0.0)
    with stage.joining("ann") as ann:
        await settle()
        stage.view.state.remove("Node", "", "n")
        stage.view.wake()
        await settle()

        assert ann.result() == ()
        assert stage.preflight.reservations.find(proposal("ann").key) is None


async def test_a_start_that_was_cancelled_in_the_same_tick_disturbs_nobody(stage: Stage) -> None:
    with stage.joining("ann") as ann, stage.joining("bob", since=2.0) as bob:
        await settle()
        ann.cancel()
        stage.view.remove_pod("x")
        stage.view.remove_pod("y")
        await settle()
        assert bob.done()


async def test_while_places_are_awaited_nobody_is_called_and_they_count_as_ahead() -> None:
    kept = KeptPlaces()
    kept.keep(("zoe", ""), KeptPlace(0.5, Wish.ANYWAY))
    stage = Stage(*FULL, kept=kept)
    with stage.joining("ann") as ann:
        stage.view.remove_pod("x")
        await settle()
        assert not ann.done()
        assert stage.line.standing(stage.ticket("ann")).place == 2
        assert isinstance(stage.preflight.check(proposal("new")), Refuse)

        kept.take(("zoe", ""))
        stage.view.wake()
        await settle()

        assert ann.done()


async def test_the_line_is_served_without_a_change_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some promises end with time alone."""
    monkeypatch.setattr("gpuspawner.preflight.waiting_line._AGAIN_SECONDS", 0.01)
    with stage.joining("ann") as ann:
        stage.view.state.remove("Pod", "jhub", "x")  # nothing is told of it

        await asyncio.wait_for(ann, 5)


@pytest.mark.parametrize(
    "containers", ["none", [{"name": "it", "resources": {"requests": {"nvidia.com/gpu": "1x"}}}]]
)
async def test_a_pod_that_nobody_can_read_gets_no_ticket(stage: Stage, containers: object) -> None:
    odd = proposal("odd").with_pod({"spec": {"containers": containers}})
    assert stage.line.ticket(odd, "odd", time.time()) is None
    assert stage.line.ahead_of(odd) == 0


async def test_numbers_by_accelerator_name_nobody(stage: Stage) -> None:
    with stage.joining("ann"), stage.joining("bob"):
        assert stage.line.waiting() == {"a100": 2}
    assert stage.line.waiting() == {}
    assert stage.line.is_empty


async def test_a_fault_while_the_line_is_served_ends_no_wait(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage.joining("ann") as ann:
        await settle()
        with monkeypatch.context() as patch:
            patch.setattr(stage.line._serving, "serve", lambda *_: 1 / 0)
            stage.view.remove_pod("x")
            await settle()
        assert not ann.done()

        stage.view.wake()
        await settle()

        assert ann.done()


async def test_who_takes_nothing_that_others_wait_for_isnt_refused_behind_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise the line would call them at once, and the gate would refuse them again."""
    kept = KeptPlaces()
    kept.keep(("zoe", ""), KeptPlace(2.0, Wish.ANYWAY))
    stage = Stage(*FULL, kept=kept)
    unknown = Start(proposal("ann").grant, (UnknownRules(("a rule",)),))
    monkeypatch.setattr(stage.preflight._decider, "decide", lambda *_: unknown)
    monkeypatch.setattr(fronts, "UNSURE_SECONDS", 0.0)

    with stage.joining("ann") as ann:
        assert ann.done()
    assert await stage.preflight.begin(proposal("ann")) == unknown


async def test_who_starts_again_after_a_failed_start_doesnt_pass_those_in_line() -> None:
    """The reservation of the failed start outlasts it, until the view shows what became of it."""
    stage = Stage(("Node", node("n", 1)))
    again = proposal("again")
    assert isinstance(await stage.preflight.begin(again), Start)
    stage.preflight.reservations.send(again.key)
    stage.preflight.release(*again.key)

    with stage.joining("ann"):
        decision = stage.preflight.check(again)

    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.in_line) == (Reason.BUSY, 1)


async def test_after_a_look_the_hub_does_something_else_first(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage.joining("ann") as ann:
        await settle()
        monkeypatch.setattr("gpuspawner.preflight.waiting_line.REST", 1e9)
        stage.view.put("Node", node("other", 0))  # the line is looked at, and nobody is called
        await settle()

        stage.view.remove_pod("x")
        await settle()

        assert not ann.done()


async def test_what_changes_while_the_line_rests_is_seen_after_that(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpuspawner.preflight.waiting_line._AGAIN_SECONDS", 3600.0)
    monkeypatch.setattr("gpuspawner.preflight.waiting_line.REST", 100)
    with stage.joining("ann") as ann:
        await settle()
        stage.view.put("Node", node("other", 0))
        await settle()

        stage.view.remove_pod("x")

        assert await asyncio.wait_for(ann, 60) == ()


async def test_one_whose_turn_nobody_can_decide_keeps_nobody_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    decide = stage.preflight._decider.decide

    def failing(proposal: Any, *more: Any) -> Any:
        if proposal.name == "odd":
            raise RuntimeError("a fault")
        return decide(proposal, *more)

    with stage.joining("odd", 2) as odd, stage.joining("ann", since=2.0) as ann:
        await settle()
        monkeypatch.setattr(stage.preflight._decider, "decide", failing)

        stage.view.remove_pod("x")
        await settle()
        stage.view.wake()
        await settle()

        assert odd.result() == ann.result() == ()
        assert "No decision about jhub/odd in line" in caplog.text

"""A start in progress: its promise, its time for a node, and its news."""

from dataclasses import replace

import pytest

from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import ScaleUp
from gpuspawner.offers.user_options import Gone
from gpuspawner.preflight.decision import AfterPreemption, CanScaleUp, Start, Wait
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scaling.outlook import MayScaleUp, Source
from gpuspawner.scaling.usual_times import longest_wait
from gpuspawner.start.attempt import Attempt
from gpuspawner.start.source import Choice
from tests.unit.makers.worlds import A100


def _attempt(decision: Start | Wait) -> Attempt:
    return Attempt(Choice(Proposal("jhub", "jupyter-alice", {}, decision.grant)), decision)


@pytest.mark.parametrize(
    ("decision", "is_promised"),
    [
        (Start(Grant(A100, 1)), True),
        (Start(Grant()), True),
        (Start(Grant(A100, 1), (AfterPreemption(),)), False),
        (Wait(Grant(A100, 1), CanScaleUp(1, 2, 8)), False),
    ],
    ids=["a GPU", "no GPU", "a doubt", "a new node"],
)
def test_only_a_start_without_unknowns_is_promised(decision, is_promised) -> None:
    assert _attempt(decision).is_promised is is_promised


@pytest.mark.parametrize(
    ("accelerator", "seconds"),
    [(None, 0), (A100, 0), (replace(A100, scale_up=ScaleUp(2, 2.5)), 300)],
    ids=["no GPU", "no new node", "a new node"],
)
def test_a_new_node_gets_twice_its_usual_time(accelerator, seconds) -> None:
    assert _attempt(Start(Grant(accelerator, 1))).seconds_for_a_node == seconds


def test_a_start_that_waits_for_a_node_is_refused_before_the_hub_gives_it_up() -> None:
    known = Wait(Grant(), CanScaleUp(1, 2, 8))
    trial = Wait(Grant(), MayScaleUp(Source.NODES))

    assert _attempt(known).seconds_for_a_node > longest_wait(known.scale_up) > 2 * 8 * 60
    assert _attempt(trial).seconds_for_a_node > longest_wait(trial.scale_up) > 15 * 60


def test_the_news_names_gone_options_before_the_wait() -> None:
    waiting = Wait(Grant(A100, 1), CanScaleUp(1, 2, 8))

    [new_node] = _attempt(waiting).news()
    [gone, then] = _attempt(waiting).news((Gone("image", "old"),))

    assert "8 minutes" in new_node.text
    assert "Image: none instead of old" in gone.text
    assert then == new_node
    assert _attempt(Start(Grant())).news() == ()

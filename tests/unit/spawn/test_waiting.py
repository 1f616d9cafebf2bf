"""What the progress page says while a start waits for a node."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gpuspawner.policy import Grant
from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Source
from gpuspawner.spawn.waiting import retold

NO_ROOM = ("FailedScheduling", "default-scheduler", "0/3 nodes are available: 3 too small")
GROWS = ("TriggeredScaleUp", "cluster-autoscaler", "pod triggered scale-up: [{t4 0->1 (max: 4)}]")
NOMINATED = ("Nominated", "karpenter", "Pod should schedule on: nodeclaim/t4-x2v4q")
BOUND = ("Scheduled", "default-scheduler", "Successfully assigned hub/jupyter-ann to t4-0")
COMES = "A new machine is starting for you; this usually takes about 4 minutes."
SOME_MINUTES = "A new machine is starting for you; this takes a few minutes."
PERHAPS = (
    "No machine has room for your server right now. "
    "The cluster may add one; if it doesn't, we'll tell you in about a minute."
)
KNOWN = Wait(Grant(), CanScaleUp(0, 4, 4.0))
TRIAL = Wait(Grant(), MayScaleUp(Source.NODES))


async def _stream(*events: tuple[str, str, str]) -> AsyncIterator[dict[str, Any]]:
    for number, (reason, reporter, message) in enumerate(events):
        raw = {
            "kind": "Event",
            "metadata": {"name": f"jupyter-ann.{number}", "namespace": "hub", "uid": f"{number}"},
            "involvedObject": {"kind": "Pod", "name": "jupyter-ann", "namespace": "hub"},
            "reason": reason,
            "message": message,
            "source": {"component": reporter},
        }
        yield {"progress": 10 * number, "message": reason, "raw_event": raw}
    yield {"message": "be patient"}


@pytest.mark.parametrize(
    ("decision", "events", "told"),
    [
        (KNOWN, (NO_ROOM, GROWS, BOUND), ["FailedScheduling", COMES, "TriggeredScaleUp", COMES]),
        (TRIAL, (NO_ROOM, BOUND), ["FailedScheduling", PERHAPS]),
        (
            TRIAL,
            (GROWS, NO_ROOM, BOUND),
            ["TriggeredScaleUp", SOME_MINUTES, "FailedScheduling", SOME_MINUTES],
        ),
        (TRIAL, (NOMINATED, BOUND), ["Nominated", SOME_MINUTES]),
        (Start(Grant()), (NO_ROOM, BOUND), ["FailedScheduling"]),
    ],
)
async def test_our_words_follow_each_event_about_the_wait(
    decision: Start | Wait, events: tuple[tuple[str, str, str], ...], told: list[str]
) -> None:
    stream = [it["message"] async for it in retold(_stream(*events), lambda: decision)]
    assert stream == [*told, "Scheduled", "be patient"]


async def test_the_words_are_those_of_the_last_decision() -> None:
    """The page may open before the last gate, and stay open until the start is forgotten."""
    decisions = iter((Start(Grant()), KNOWN))
    told = retold(_stream(*[NO_ROOM] * 3), lambda: next(decisions, None))

    stream = [it["message"] async for it in told]

    failed = "FailedScheduling"
    assert stream == [failed, failed, COMES, failed, "be patient"]

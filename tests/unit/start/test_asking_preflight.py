"""The preflight's decision about a start; tests/hub/gates/test_gates.py tests it in a hub."""

from dataclasses import dataclass
from typing import Any

import pytest

from gpuspawner.messages import Message, OnForm
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import (
    Decision,
    Overruled,
    Reason,
    Refuse,
    Start,
    UnknownRules,
    Wait,
)
from gpuspawner.preflight.dry_runs import Admission
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.scaling.outlook import MayScaleUp, Obstacle, Source, WhyNoNode
from gpuspawner.start.asking_preflight import decide
from gpuspawner.start.refusal import Refusal
from gpuspawner.start.source import Choice
from gpuspawner.traits import ENFORCE, OFF, WARN
from tests.unit.makers.hubs import Script

CHOICE = Choice(Proposal("default", "jupyter-alice", {}, Grant()))
FULL = Refuse(Grant(), Reason.BUSY)


@pytest.fixture
def spawner(hub_with) -> Any:
    return hub_with().spawner(preflight=ENFORCE)


def _fails(proposal: Proposal, _: Admission) -> Decision:
    raise ZeroDivisionError(proposal)


async def _fails_late(proposal: Proposal, admission: Admission) -> Decision:
    return _fails(proposal, admission)


@pytest.mark.parametrize("question", [_fails, _fails_late])
async def test_an_error_of_the_preflight_is_logged_and_the_start_goes_on(
    spawner, question, caplog
) -> None:
    decision = await decide(spawner, CHOICE, question, Script())

    assert decision == Start(Grant(), (UnknownRules(("the preflight itself failed",)),))
    assert "ZeroDivisionError" in caplog.text
    assert "jupyter-alice" in caplog.text


@pytest.mark.parametrize("is_gone", [True, False])
async def test_only_a_pod_that_kubespawner_has_seen_go_may_have_left(spawner, is_gone) -> None:
    asked: list[Proposal] = []
    spawner.gpuspawner_stock.knows_no_pod = lambda: is_gone

    await decide(spawner, CHOICE, lambda it, _: asked.append(it) or Start(it.grant), Script())

    assert [it.older_stays for it in asked] == [not is_gone]


async def test_a_refusal_says_why(spawner) -> None:
    with pytest.raises(Refusal, match=r"No machine can take your server right now") as raised:
        await decide(spawner, CHOICE, lambda *_: FULL, Script())

    assert raised.value.slug == "busy"


@dataclass(frozen=True)
class _Speechless(Choice):
    """A choice whose search for alternatives fails."""

    async def explain(self, refusal: Refuse, admission: Admission) -> tuple[Message, OnForm]:
        raise ZeroDivisionError((refusal, admission))


async def test_a_refusal_stands_even_if_finding_alternatives_fails(spawner, caplog) -> None:
    with pytest.raises(Refusal, match=r"No machine can take your server right now") as raised:
        await decide(spawner, _Speechless(CHOICE.proposal), lambda *_: FULL, Script())

    assert raised.value.slug == "busy"
    assert "Finding alternatives for jupyter-alice failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


NO_NODE_COMES = Refuse(Grant(), Reason.BUSY, obstacles=(Obstacle(WhyNoNode.NO_ANSWER),))


@pytest.mark.parametrize("refusal", [FULL, NO_NODE_COMES], ids=["full", "no node comes"])
async def test_with_preflight_warn_a_refusal_is_a_note_on_the_start(spawner, refusal) -> None:
    spawner.preflight = WARN

    decision = await decide(spawner, CHOICE, lambda *_: refusal, Script())

    assert decision == Start(Grant(), (Overruled(refusal),))


async def test_with_preflight_off_the_preflight_is_not_asked(spawner) -> None:
    spawner.preflight = OFF

    assert await decide(spawner, CHOICE, _fails, Script()) == Start(Grant())


@pytest.mark.parametrize("mode", [ENFORCE, WARN])
async def test_a_wait_stays_a_wait(mode, spawner) -> None:
    waiting = Wait(Grant(), MayScaleUp(Source.NODES))
    spawner.preflight = mode

    assert await decide(spawner, CHOICE, lambda *_: waiting, Script()) == waiting

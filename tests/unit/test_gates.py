"""What the gates share; tests/hub/test_gates.py has them in a hub."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from gpuspawner import gates, options
from gpuspawner.config import ENFORCE, OFF, WARN
from gpuspawner.policy import Grant
from gpuspawner.preflight.ask import Ask
from gpuspawner.preflight.decision import (
    Decision,
    Overruled,
    Reason,
    Refuse,
    Start,
    UnknownRules,
)

NOBODY_S: Any = SimpleNamespace(
    apply_user_options=gates.apply_nothing, options_from_form=options.from_form
)
ADMINISTRATORS: list[Any] = [
    SimpleNamespace(apply_user_options=print, options_from_form=options.from_form),
    SimpleNamespace(apply_user_options=gates.apply_nothing, options_from_form=print),
]


def test_where_nobody_else_reads_options_all_of_them_are_ours_to_check() -> None:
    assert gates.split(NOBODY_S, {"gpus": 1, "course": "ml"}) == ({"gpus": 1, "course": "ml"}, {})


@pytest.mark.parametrize("spawner", ADMINISTRATORS, ids=["applied", "read from the form"])
def test_where_administrators_read_options_other_names_are_theirs(spawner: Any) -> None:
    assert gates.split(spawner, {"gpus": 1, "course": "ml"}) == ({"gpus": 1}, {"course": "ml"})


@pytest.mark.parametrize("spawner", [NOBODY_S, *ADMINISTRATORS])
def test_what_is_no_object_is_handed_on_for_the_parser_to_refuse(spawner: Any) -> None:
    assert gates.split(spawner, ["gpus"]) == (["gpus"], {})


ASK = Ask("default", "jupyter-alice", {}, Grant())
FULL = Refuse(Grant(), Reason.BUSY)


def spawner(preflight: str) -> Any:
    """As much of a spawner as a decision needs."""

    async def dry_run(namespace: str, pod: object) -> object:
        return {"admitted": pod, "in": namespace}

    return SimpleNamespace(preflight=preflight, log=logging.getLogger("hub"), dry_run=dry_run)


async def _judge_that_fails_late(ask: Ask) -> Decision:
    raise ZeroDivisionError(ask)


def _judge_that_fails(ask: Ask) -> Decision:
    raise ZeroDivisionError(ask)


@pytest.mark.parametrize("judge", [_judge_that_fails, _judge_that_fails_late])
async def test_a_fault_of_the_preflight_is_logged_and_the_start_goes_on(
    judge: gates.Judge, caplog: pytest.LogCaptureFixture
) -> None:
    decision = await gates.decide(spawner(ENFORCE), ASK, judge)

    assert decision == Start(Grant(), (UnknownRules(("the preflight itself failed",)),))
    assert "ZeroDivisionError" in caplog.text
    assert "jupyter-alice" in caplog.text


async def test_a_judge_can_ask_what_admission_makes_of_a_pod() -> None:
    async def judge(ask: Ask) -> Decision:
        assert await ask.admit({"spec": {}}) == {"admitted": {"spec": {}}, "in": "default"}
        return Start(ask.grant, (UnknownRules(("it was asked",)),))

    decision = await gates.decide(spawner(ENFORCE), ASK, judge)

    assert decision == Start(Grant(), (UnknownRules(("it was asked",)),))


async def test_with_only_a_warning_a_refusal_is_noted_on_the_start() -> None:
    assert await gates.decide(spawner(WARN), ASK, lambda _: FULL) == Start(
        Grant(), (Overruled(FULL),)
    )


async def test_switched_off_nobody_is_asked() -> None:
    assert await gates.decide(spawner(OFF), ASK, _judge_that_fails) == Start(Grant())

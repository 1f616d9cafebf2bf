"""Limits on one user's questions, at once and per second, without effect on others."""

from contextlib import ExitStack

import pytest

from gpuspawner.web.rate_limits import A_SECOND, MOST_AT_ONCE, SAVED_UP, Questions, TooManyQuestions
from tests.unit.makers.clocks import Clock


def may_ask(questions, person):
    try:
        with questions.counted(person):
            return True
    except TooManyQuestions:
        return False


def test_a_user_s_questions_at_once_are_limited():
    questions = Questions(Clock(0.0))

    with ExitStack() as under_way:
        for _ in range(MOST_AT_ONCE):
            under_way.enter_context(questions.counted("ann"))
        with pytest.raises(TooManyQuestions), questions.counted("ann"):
            pass
        assert may_ask(questions, "bob")

    assert may_ask(questions, "ann")


def test_a_user_s_questions_per_second_are_limited():
    clock = Clock(0.0)
    questions = Questions(clock)

    assert sum(may_ask(questions, "ann") for _ in range(1000)) == SAVED_UP
    assert may_ask(questions, "bob")

    clock.now = 1
    assert sum(may_ask(questions, "ann") for _ in range(1000)) == A_SECOND


def test_a_failed_question_no_longer_counts():
    questions = Questions(Clock(0.0))

    for _ in range(MOST_AT_ONCE + 1):
        with pytest.raises(ZeroDivisionError), questions.counted("ann"):
            _ = 1 / 0


def test_a_user_who_stops_asking_is_forgotten():
    clock = Clock(0.0)
    questions = Questions(clock)
    for number in range(100):
        may_ask(questions, f"person-{number}")

    clock.now = 60
    may_ask(questions, "another")

    assert list(questions._buckets) == ["another"]

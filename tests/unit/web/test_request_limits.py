"""One person's questions: so many at once, so many a second, and nobody else has fewer for it."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from gpuspawner.web.request_limits import (
    A_SECOND,
    MOST_AT_ONCE,
    SAVED_UP,
    Questions,
    TooManyQuestionsError,
)
from tests.unit.admission.test_slots import Clock


def may_ask(questions: Questions, person: str) -> bool:
    try:
        with questions.counted(person):
            return True
    except TooManyQuestionsError:
        return False


def test_of_one_person_only_so_many_are_under_way() -> None:
    questions = Questions(Clock())

    with ExitStack() as under_way:
        for _ in range(MOST_AT_ONCE):
            under_way.enter_context(questions.counted("ann"))
        with pytest.raises(TooManyQuestionsError), questions.counted("ann"):
            pass
        assert may_ask(questions, "bob")

    assert may_ask(questions, "ann")


def test_of_one_person_only_so_many_a_second_are_answered_however_quickly() -> None:
    clock = Clock()
    questions = Questions(clock)

    assert sum(may_ask(questions, "ann") for _ in range(1000)) == SAVED_UP
    assert may_ask(questions, "bob")

    clock.now = 1
    assert sum(may_ask(questions, "ann") for _ in range(1000)) == A_SECOND


def test_a_question_that_fails_is_over() -> None:
    questions = Questions(Clock())

    for _ in range(MOST_AT_ONCE + 1):
        with pytest.raises(ZeroDivisionError), questions.counted("ann"):
            _ = 1 / 0


def test_who_has_not_asked_for_a_while_is_forgotten() -> None:
    clock = Clock()
    questions = Questions(clock)
    for number in range(100):
        may_ask(questions, f"person-{number}")

    clock.now = 60
    may_ask(questions, "another")

    assert list(questions._buckets) == ["another"]

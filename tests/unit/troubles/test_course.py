"""For how long a start has been where it is, and what its page makes of that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.troubles.course import Course, last_mark, percent
from gpuspawner.troubles.limits import StartPhase
from gpuspawner.troubles.steps import Stage, Step
from gpuspawner.troubles.trouble import Kind, Trouble

LOOKING = Stage(Step.SCHEDULING, (-1, 0))
FOUND = Stage(Step.NODE_FOUND, (-1, 2))
PULLING = Stage(Step.PULLING, (0, 0))
INITIALIZING = Stage(Step.INITIALIZING, (0, 1))
PULLING_NOTEBOOK = Stage(Step.PULLING, (1, 0))
STARTING = Stage(Step.STARTING, (1, 1))


def test_a_phase_lasts_over_all_its_stages() -> None:
    course = Course()
    course.note([LOOKING], [], 10)
    course.note([LOOKING, FOUND], [], 15)
    course.note([LOOKING, FOUND, PULLING], [], 40)

    assert course.in_phase(StartPhase.PREPARED) == 25
    assert course.in_stage(PULLING) == 0
    assert course.in_phase(StartPhase.STARTED) == 0


def test_the_pull_of_a_second_container_is_no_time_of_the_start_of_the_first() -> None:
    course = Course()
    reached = [LOOKING]
    moments = ((PULLING, 0), (INITIALIZING, 5), (PULLING_NOTEBOOK, 7), (STARTING, 500))
    for stage, now in moments:
        reached.append(stage)
        course.note(reached, [], now)
    course.note(reached, [], 503)

    assert course.in_phase(StartPhase.STARTED) == 2 + 3
    assert course.in_phase(StartPhase.PREPARED) == 5 + 493


def test_a_trouble_lasts_until_it_is_over_and_then_begins_anew() -> None:
    course, lasting = Course(), []
    trouble, over = Trouble(Kind.NODE_LOST), Trouble(Kind.NODE_LOST, is_over=True)
    for now, found in enumerate([[trouble], [trouble], [over], [trouble], [trouble], []]):
        course.note([LOOKING], found, now)
        lasting.append(course.lasting().get(Kind.NODE_LOST))

    assert lasting == [0, 1, None, 0, 1, None]


def test_a_crash_lasts_on_while_the_container_runs_again() -> None:
    course = Course()
    crashed, running = Trouble(Kind.CRASHED), Trouble(Kind.CRASHED, is_over=True)
    for now, found in enumerate([crashed, running, crashed]):
        course.note([LOOKING], [found], now)

    assert course.lasting() == {Kind.CRASHED: 2}


@pytest.mark.parametrize(
    ("elapsed", "mark"),
    [(0, 0), (29.9, 0), (30, 30), (61, 60), (179, 120), (299, 180), (300, 300), (3599, 3300)],
)
def test_the_last_mark_is_the_one_that_has_passed(elapsed: float, mark: int) -> None:
    assert last_mark(elapsed) == mark


def test_an_hour_has_few_marks() -> None:
    assert len({last_mark(second) for second in range(3600)}) < 20


ORDER = list(Step)


def reached(*steps: Step) -> list[Stage]:
    return [Stage(step, (ORDER.index(step), 0)) for step in steps]


def never(_: Stage) -> None:
    return None


def test_a_long_step_takes_most_of_the_bar() -> None:
    def usual(stage: Stage) -> float:
        return 300.0 if stage.step is Step.PULLING else 1.0

    before = reached(Step.SCHEDULING, Step.NODE_FOUND, Step.PULLING)

    begun, ended = percent(before, 0, usual), percent([*before, *reached(Step.STARTING)], 0, usual)

    assert begun < 10
    assert ended > 80


@given(st.floats(min_value=0, max_value=1e6), st.floats(min_value=0, max_value=1e6))
def test_it_moves_within_a_step_and_never_reaches_its_end(a: float, b: float) -> None:
    stages = reached(Step.SCHEDULING, Step.PULLING)
    early, late = (percent(stages, seconds, never) for seconds in sorted((a, b)))
    assert early <= late <= percent([*stages, *reached(Step.STARTING)], 0, never)


@given(st.sets(st.sampled_from(ORDER)), st.floats(allow_nan=False), st.floats(min_value=0))
def test_it_is_always_within_its_ends(steps: set[Step], elapsed: float, usual: float) -> None:
    stages = reached(*sorted(steps, key=ORDER.index))
    assert 5 <= percent(stages, elapsed, lambda _: usual) <= 95

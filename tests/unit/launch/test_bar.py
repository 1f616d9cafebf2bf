"""When a page says again how long a start waits, and how far its progress bar is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.launch.progress import last_mark, percent
from gpuspawner.troubles.steps import Stage, Step


@pytest.mark.parametrize(
    ("elapsed", "mark"),
    [(0, 0), (29.9, 0), (30, 30), (61, 60), (179, 120), (299, 180), (300, 300), (3599, 3300)],
)
def test_the_last_mark_is_the_one_that_has_passed(elapsed, mark):
    assert last_mark(elapsed) == mark


ORDER = list(Step)


def reached(*steps):
    return [Stage(step, (ORDER.index(step), 0)) for step in steps]


def never(_):
    return None


def test_a_long_step_takes_most_of_the_bar():
    def usual(stage):
        return 300.0 if stage.step is Step.PULLING else 1.0

    before = reached(Step.SCHEDULING, Step.NODE_FOUND, Step.PULLING)

    begun, ended = percent(before, 0, usual), percent([*before, *reached(Step.STARTING)], 0, usual)

    assert begun < 10
    assert ended > 80


@given(st.floats(min_value=0, max_value=1e6), st.floats(min_value=0, max_value=1e6))
def test_it_moves_within_a_step_and_never_reaches_its_end(a, b):
    stages = reached(Step.SCHEDULING, Step.PULLING)
    early, late = (percent(stages, seconds, never) for seconds in sorted((a, b)))
    assert early <= late <= percent([*stages, *reached(Step.STARTING)], 0, never)


@given(st.sets(st.sampled_from(ORDER)), st.floats(allow_nan=False), st.floats(min_value=0))
def test_it_is_always_within_its_ends(steps, elapsed, usual):
    stages = reached(*sorted(steps, key=ORDER.index))
    assert 5 <= percent(stages, elapsed, lambda _: usual) <= 95

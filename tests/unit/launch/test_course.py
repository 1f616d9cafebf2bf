"""For how long a start has been where it is."""

from gpuspawner.launch.course import Course
from gpuspawner.launch.limits import Phase
from gpuspawner.launch.steps import Stage, Step
from gpuspawner.launch.trouble import Kind, Trouble

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

    assert course.in_phase(Phase.PREPARED) == 25
    assert course.in_stage(PULLING) == 0
    assert course.in_phase(Phase.STARTED) == 0


def test_the_pull_of_a_second_container_is_no_time_of_the_start_of_the_first() -> None:
    course = Course()
    reached = [LOOKING]
    moments = ((PULLING, 0), (INITIALIZING, 5), (PULLING_NOTEBOOK, 7), (STARTING, 500))
    for stage, now in moments:
        reached.append(stage)
        course.note(reached, [], now)
    course.note(reached, [], 503)

    assert course.in_phase(Phase.STARTED) == 2 + 3
    assert course.in_phase(Phase.PREPARED) == 5 + 493


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

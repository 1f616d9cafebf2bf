"""When a start is given up."""

import pytest

from gpuspawner.troubles.giving_up import Course, GivenUp, StartPhase, hopeless, late, phase
from gpuspawner.troubles.steps import Stage, Step
from gpuspawner.troubles.trouble import Exit, Kind, Trouble


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], StartPhase.SCHEDULED),
        ([Step.SCHEDULING, Step.NODE_STARTING], StartPhase.SCHEDULED),
        ([Step.SCHEDULING, Step.NODE_FOUND], StartPhase.PREPARED),
        ([Step.NODE_FOUND, Step.VOLUMES, Step.PULLING], StartPhase.PREPARED),
        ([Step.PULLING, Step.STARTING], StartPhase.STARTED),
        # The second container's image comes after the first container.
        ([Step.PULLING, Step.INITIALIZING, Step.PULLING], StartPhase.PREPARED),
        ([Step.STARTING, Step.RUNNING], StartPhase.STARTED),
    ],
)
def test_the_phase_is_that_of_the_last_step(steps, expected):
    stages = [Stage(step, (number, 0)) for number, step in enumerate(steps)]
    assert phase(stages) is expected


def test_what_cannot_pass_ends_a_start_at_once():
    final = Trouble(Kind.IMAGE_MISSING, is_final=True)
    assert hopeless([Trouble(Kind.PULL_FAILED), final], {}) == GivenUp(final)


@pytest.mark.parametrize(
    ("kind", "attempts", "seconds", "is_given_up"),
    [
        (Kind.CRASHED, 2, 60.0, False),
        (Kind.CRASHED, 3, 12.0, True),
        (Kind.CRASHED, 3, 3.0, False),
        (Kind.OUT_OF_MEMORY, 1, 60.0, False),
        (Kind.OUT_OF_MEMORY, 2, 1.0, True),
        (Kind.REGISTRY_UNREACHABLE, 50, 60.0, False),
        (Kind.SECRET_MISSING, 1, 29.0, False),  # somebody may still create it
        (Kind.SECRET_MISSING, 1, 30.0, True),
        (Kind.IMAGE_FORBIDDEN, 1, 29.0, False),  # a new node may still get its credentials
        (Kind.IMAGE_FORBIDDEN, 1, 300.0, True),
        (Kind.IMAGE_NEVER_PULLED, 1, 29.0, False),
        (Kind.IMAGE_NEVER_PULLED, 1, 300.0, True),
    ],
)
def test_what_may_pass_has_some_attempts_or_some_seconds(kind, attempts, seconds, is_given_up):
    trouble = Trouble(kind, attempts=attempts)
    assert hopeless([trouble], {kind: seconds}) == (GivenUp(trouble) if is_given_up else None)


def test_what_is_over_ends_nothing():
    over = Trouble(Kind.OUT_OF_MEMORY, attempts=9, is_over=True)
    assert hopeless([over], {Kind.OUT_OF_MEMORY: 1e9}) is None


def test_a_phase_that_takes_too_long_ends_with_what_goes_wrong_in_it():
    over, present = Trouble(Kind.NETWORK, is_over=True), Trouble(Kind.VOLUME_ATTACH)
    assert late([over, present], StartPhase.PREPARED) == GivenUp(present, StartPhase.PREPARED)
    assert late([over], StartPhase.PREPARED) == GivenUp(None, StartPhase.PREPARED)


def test_a_server_that_runs_again_after_a_crash_does_not_answer_because_of_it():
    crash = Trouble(Kind.CRASHED, is_over=True, exit=Exit(1))
    assert late([crash], StartPhase.ANSWERED) == GivenUp(crash, StartPhase.ANSWERED)
    assert late([crash], StartPhase.STARTED) == GivenUp(None, StartPhase.STARTED)


def test_a_warning_in_unknown_words_says_less_of_a_silent_server_than_its_crash():
    unknown, crash = Trouble(Kind.UNKNOWN), Trouble(Kind.CRASHED, is_over=True, exit=Exit(1))
    assert late([unknown, crash], StartPhase.ANSWERED).cause == crash
    assert late([unknown], StartPhase.ANSWERED).cause == unknown


LOOKING = Stage(Step.SCHEDULING, (-1, 0))
FOUND = Stage(Step.NODE_FOUND, (-1, 2))
PULLING = Stage(Step.PULLING, (0, 0))
INITIALIZING = Stage(Step.INITIALIZING, (0, 1))
PULLING_NOTEBOOK = Stage(Step.PULLING, (1, 0))
STARTING = Stage(Step.STARTING, (1, 1))


def test_a_phase_lasts_over_all_its_stages():
    course = Course()
    course.note([LOOKING], [], 10)
    course.note([LOOKING, FOUND], [], 15)
    course.note([LOOKING, FOUND, PULLING], [], 40)

    assert course.in_phase(StartPhase.PREPARED) == 25
    assert course.in_stage(PULLING) == 0
    assert course.in_phase(StartPhase.STARTED) == 0


def test_the_pull_of_a_second_container_is_no_time_of_the_start_of_the_first():
    course = Course()
    reached = [LOOKING]
    moments = ((PULLING, 0), (INITIALIZING, 5), (PULLING_NOTEBOOK, 7), (STARTING, 500))
    for stage, now in moments:
        reached.append(stage)
        course.note(reached, [], now)
    course.note(reached, [], 503)

    assert course.in_phase(StartPhase.STARTED) == 2 + 3
    assert course.in_phase(StartPhase.PREPARED) == 5 + 493


def test_a_trouble_lasts_until_it_is_over_and_then_begins_anew():
    course, lasting = Course(), []
    trouble, over = Trouble(Kind.NODE_LOST), Trouble(Kind.NODE_LOST, is_over=True)
    for now, found in enumerate([[trouble], [trouble], [over], [trouble], [trouble], []]):
        course.note([LOOKING], found, now)
        lasting.append(course.lasting().get(Kind.NODE_LOST))

    assert lasting == [0, 1, None, 0, 1, None]


def test_a_crash_lasts_on_while_the_container_runs_again():
    course = Course()
    crashed, running = Trouble(Kind.CRASHED), Trouble(Kind.CRASHED, is_over=True)
    for now, found in enumerate([crashed, running, crashed]):
        course.note([LOOKING], [found], now)

    assert course.lasting() == {Kind.CRASHED: 2}

"""What the pages of a start are told, and when."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.decision import Wait
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Source
from gpuspawner.troubles.images import Pulled, Pulling
from gpuspawner.troubles.steps import Stage, Step, UsualSteps
from gpuspawner.troubles.trouble import About, Kind, Trouble
from tests.unit.makers.launches import Launch

LOOKING = Stage(Step.SCHEDULING, (-1, 0))
COMING = Stage(Step.NODE_STARTING, (-1, 1), subject="l4")
FOUND = Stage(Step.NODE_FOUND, (-1, 2))
PULLING = Stage(Step.PULLING, (0, 0), image=Pulling("lab:1"))
PULLED = Stage(Step.PULLING, (0, 0), image=Pulled("lab:1", seconds=400))
STARTING = Stage(Step.STARTING, (0, 1))
RUNNING = Stage(Step.RUNNING, (9, 9))
UNREACHABLE = Trouble(Kind.REGISTRY_UNREACHABLE, About(image="lab:1"), texts=("no such host",))
CANNOT_REACH = "The registry of the image “lab:1” can't be reached. Still trying."
DOWNLOADING = "Downloading your server's software."

COMES = Wait(Grant(), CanScaleUp(0, 2, 8.0))
MAY_COME = Wait(Grant(), MayScaleUp(Source.DECLARED))


def learned(stage, seconds, following):
    """What a hub knows after one start."""
    began = datetime(2026, 11, 23, tzinfo=UTC)
    ended = began + timedelta(seconds=seconds)
    usual = UsualSteps()
    usual.learn((replace(stage, since=began), replace(following, since=ended)))
    return usual


def test_each_stage_is_told_once():
    launch = Launch()
    for stages in (
        [LOOKING],
        [LOOKING],
        [LOOKING, FOUND],
        [LOOKING, FOUND, PULLING],
        [LOOKING, FOUND, PULLING],
        [LOOKING, FOUND, PULLED],
        [LOOKING, FOUND, PULLED, STARTING],
        [LOOKING, FOUND, PULLED, STARTING, RUNNING],
    ):
        launch.see(*stages, after=1)

    assert launch.page.texts == [
        "Looking for a machine for your server.",
        "Your server has a machine.",
        DOWNLOADING,
        "Your server's software is on the machine.",
        "Starting your server.",
        "Your server is running and will answer in a moment.",
    ]


def test_what_kubernetes_says_comes_with_the_next_message_and_only_once():
    launch = Launch()
    launch.see(LOOKING, texts=["one", "one"])
    launch.see(LOOKING, texts=["two"])
    launch.see(FOUND, texts=["three"])
    launch.see(FOUND, PULLING)

    first, second, third = (it.html for it in launch.page.told)
    assert "<code>one</code>" in first
    assert "<code>two<br>three</code>" in second
    assert "<details" not in third


def test_a_long_wait_is_told_again_at_its_marks_with_its_usual_time():
    launch = Launch(usual=learned(PULLING, 400, STARTING))
    for _second in range(301):
        launch.see(FOUND, PULLING, after=1)

    assert launch.page.texts == [
        f"{DOWNLOADING} This usually takes about 7 minutes.",
        *(
            f"{DOWNLOADING} {elapsed} so far; this usually takes about 7 minutes."
            for elapsed in ("30 seconds", "1 minute", "2 minutes", "3 minutes", "5 minutes")
        ),
    ]


def test_a_hitch_is_told_once_and_again_at_the_marks_for_as_long_as_it_lasts():
    launch = Launch()
    launch.see(FOUND, PULLING)
    for after in (1, 1, 1, 30):
        launch.see(FOUND, PULLING, after=after, troubles=[UNREACHABLE], texts=["no such host"])
    launch.see(FOUND, PULLING, after=30, troubles=[replace(UNREACHABLE, is_over=True)])

    assert launch.page.texts == [
        DOWNLOADING,
        CANNOT_REACH,
        f"{CANNOT_REACH} 30 seconds so far.",
        f"{DOWNLOADING} 1 minute so far.",
    ]
    assert launch.page.told[1].html.count("no such host") == 1


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(Kind.UNSCHEDULABLE, texts=("0/3 nodes are available",)),
        Trouble(Kind.UNKNOWN, texts=("policy require-labels fail: label 'team' is required",)),
        Trouble(Kind.REGISTRY_UNREACHABLE, is_over=True),
        Trouble(Kind.IMAGE_MISSING, is_final=True),
    ],
)
def test_what_is_over_or_told_otherwise_is_no_hitch(trouble):
    launch = Launch()
    launch.see(LOOKING, troubles=[trouble])
    assert launch.page.texts == ["Looking for a machine for your server."]


def test_a_hitch_whose_cause_is_vague_waits_for_a_better_one():
    launch, vague = Launch(), Trouble(Kind.VOLUME_WAITS, texts=("timed out",))
    launch.see(FOUND, troubles=[vague])
    launch.see(FOUND, after=4.9, troubles=[vague])
    assert len(launch.page.told) == 1
    launch.see(FOUND, after=0.1, troubles=[vague])
    assert launch.page.texts[1:] == [
        "Your files can't be connected to the machine yet. Still trying."
    ]


def test_a_vague_hitch_says_nothing_beside_a_clear_one():
    launch, vague = Launch(), Trouble(Kind.PULL_BACK_OFF, texts=("Back-off",))
    for _second in range(10):
        launch.see(FOUND, PULLING, after=1, troubles=[vague, UNREACHABLE])
    assert launch.page.texts == [DOWNLOADING, CANNOT_REACH]


@pytest.mark.parametrize("decision", [COMES, MAY_COME])
def test_who_waits_for_a_node_is_not_told_that_one_is_looked_for(decision):
    launch = Launch(decision)
    launch.see(LOOKING)
    launch.see(LOOKING, COMING, after=20)
    launch.see(LOOKING, COMING, FOUND, after=200)

    assert [it.partition(";")[0].rstrip(".") for it in launch.page.texts] == [
        "A new machine is starting for you",
        "Your server has a machine",
    ]


def test_a_node_that_takes_long_is_told_again_even_if_its_autoscaler_says_nothing():
    launch = Launch(COMES)
    launch.see(LOOKING)
    launch.see(LOOKING, after=120)
    launch.see(LOOKING, COMING, after=1)
    launch.see(LOOKING, COMING, after=60)

    for_so_long = (
        "A new machine is starting for you. {} so far; this usually takes about 8 minutes."
    )
    assert launch.page.texts == [
        for_so_long.format("2 minutes"),
        "A new machine is starting for you; this usually takes about 8 minutes.",
        for_so_long.format("1 minute"),
    ]


def test_nobody_is_told_that_a_node_comes_which_only_may_come():
    launch = Launch(MAY_COME)
    launch.see(LOOKING)
    launch.see(LOOKING, after=50)
    assert launch.page.texts == []


def test_the_usual_times_are_learned_from_a_start_that_runs():
    usual = UsualSteps()
    launch = Launch(usual=usual)
    launch.see(FOUND, PULLED)
    assert usual.seconds(PULLING) is None
    launch.see(FOUND, PULLED, STARTING, RUNNING)
    assert usual.seconds(PULLING) == 400


def test_the_bar_moves_while_nothing_is_told():
    launch = Launch()
    for _second in range(5):
        launch.see(FOUND, PULLING, after=1)
    assert len(launch.page.told) == 1
    assert launch.page.bar == sorted(launch.page.bar)
    assert launch.page.bar[-1] > launch.page.bar[0]

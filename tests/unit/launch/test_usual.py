"""How long the steps of a start usually take."""

from datetime import UTC, datetime, timedelta

from gpuspawner.launch.pulls import Pulled, Pulling
from gpuspawner.launch.steps import Stage, Step
from gpuspawner.launch.usual import UsualSteps

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def stage(
    step: Step, second: float | None, subject: str = "", image: Pulling | Pulled | None = None
) -> Stage:
    since = None if second is None else NOON + timedelta(seconds=second)
    return Stage(step, (0, 0), since, subject, image)


def learned(*stages: Stage) -> UsualSteps:
    usual = UsualSteps()
    usual.learn(stages)
    return usual


def test_a_step_takes_until_the_next_one() -> None:
    usual = learned(stage(Step.NODE_STARTING, 10), stage(Step.NODE_FOUND, 190))

    assert usual.seconds(stage(Step.NODE_STARTING, 0)) == 180
    assert usual.seconds(stage(Step.NODE_FOUND, 0)) is None


def test_a_new_node_takes_as_long_as_its_pool_does() -> None:
    usual = learned(stage(Step.NODE_STARTING, 10, "gpu"), stage(Step.NODE_FOUND, 190))

    assert usual.seconds(stage(Step.NODE_STARTING, 0, "gpu")) == 180
    assert usual.seconds(stage(Step.NODE_STARTING, 0, "cpu")) is None


def test_volumes_take_as_long_as_those_of_earlier_starts() -> None:
    usual = learned(stage(Step.VOLUMES, 0), stage(Step.PULLING, 8))

    assert usual.seconds(stage(Step.VOLUMES, 0)) == 8


def test_a_pull_takes_as_long_as_the_kubelet_says_of_its_image() -> None:
    done = Pulled("a:1", seconds=40, with_waiting=60)
    usual = learned(stage(Step.PULLING, None, image=done), stage(Step.STARTING, None))

    assert usual.seconds(stage(Step.PULLING, 0, image=Pulling("a:1"))) == 60
    assert usual.seconds(stage(Step.PULLING, 0, image=Pulling("a:2"))) is None


def test_an_image_that_was_there_says_nothing_of_its_pull() -> None:
    there = Pulled("a:1", was_there=True)
    usual = learned(stage(Step.PULLING, 0, image=there), stage(Step.STARTING, 0))

    assert usual.seconds(stage(Step.PULLING, 0, image=Pulling("a:1"))) is None


def test_a_step_without_a_time_is_not_learned() -> None:
    usual = learned(
        stage(Step.SCHEDULING, None), stage(Step.NODE_FOUND, 3), stage(Step.VOLUMES, None)
    )

    assert usual.seconds(stage(Step.SCHEDULING, 0)) is None
    assert usual.seconds(stage(Step.NODE_FOUND, 0)) is None


def test_clocks_that_disagree_teach_nothing() -> None:
    usual = learned(stage(Step.SCHEDULING, 5), stage(Step.NODE_FOUND, 3))

    assert usual.seconds(stage(Step.SCHEDULING, 0)) is None


def test_containers_are_told_apart() -> None:
    usual = learned(
        stage(Step.INITIALIZING, 0, "block-cloud-metadata"), stage(Step.PULLING, 2, "notebook")
    )

    assert usual.seconds(stage(Step.INITIALIZING, 0, "block-cloud-metadata")) == 2
    assert usual.seconds(stage(Step.INITIALIZING, 0, "other")) is None

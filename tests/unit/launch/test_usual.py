"""How long the steps of a start usually take."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from gpuspawner.launch.pulls import Pulled, Pulling
from gpuspawner.launch.steps import Stage, Step
from gpuspawner.launch.usual import Deciding, UsualSteps

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
GPU = Deciding(pool="gpu", storage_class="ssd")


def stage(
    step: Step, second: float | None, subject: str = "", image: Pulling | Pulled | None = None
) -> Stage:
    since = None if second is None else NOON + timedelta(seconds=second)
    return Stage(step, (0, 0), since, subject, image)


def learned(*stages: Stage, deciding: Deciding = GPU) -> UsualSteps:
    usual = UsualSteps()
    usual.learn(stages, deciding)
    return usual


def test_a_step_takes_until_the_next_one() -> None:
    usual = learned(stage(Step.NODE_STARTING, 10), stage(Step.NODE_FOUND, 190))

    assert usual.seconds(stage(Step.NODE_STARTING, 0), GPU) == 180
    assert usual.seconds(stage(Step.NODE_FOUND, 0), GPU) is None


def test_a_new_node_takes_as_long_as_its_pool_does() -> None:
    usual = learned(stage(Step.NODE_STARTING, 10), stage(Step.NODE_FOUND, 190))

    assert usual.seconds(stage(Step.NODE_STARTING, 0, subject="gpu"), Deciding()) == 180
    assert usual.seconds(stage(Step.NODE_STARTING, 0), Deciding(pool="cpu")) is None


def test_volumes_take_as_long_as_their_storage_class_does() -> None:
    usual = learned(stage(Step.VOLUMES, 0), stage(Step.PULLING, 8))

    assert usual.seconds(stage(Step.VOLUMES, 0), Deciding(storage_class="ssd")) == 8
    assert usual.seconds(stage(Step.VOLUMES, 0), Deciding(storage_class="nfs")) is None


def test_a_pull_takes_as_long_as_the_kubelet_says_of_its_image() -> None:
    done = Pulled("a:1", seconds=40, with_waiting=60)
    usual = learned(stage(Step.PULLING, None, image=done), stage(Step.STARTING, None))

    assert usual.seconds(stage(Step.PULLING, 0, image=Pulling("a:1")), GPU) == 60
    assert usual.seconds(stage(Step.PULLING, 0, image=Pulling("a:2")), GPU) is None


def test_an_image_that_was_there_says_nothing_of_its_pull() -> None:
    there = Pulled("a:1", was_there=True)
    usual = learned(stage(Step.PULLING, 0, image=there), stage(Step.STARTING, 0))

    assert usual.seconds(stage(Step.PULLING, 0, image=Pulling("a:1")), GPU) is None


def test_a_step_without_a_time_is_not_learned() -> None:
    usual = learned(
        stage(Step.SCHEDULING, None), stage(Step.NODE_FOUND, 3), stage(Step.VOLUMES, None)
    )

    assert usual.seconds(stage(Step.SCHEDULING, 0), GPU) is None
    assert usual.seconds(stage(Step.NODE_FOUND, 0), GPU) is None


def test_clocks_that_disagree_teach_nothing() -> None:
    usual = learned(stage(Step.SCHEDULING, 5), stage(Step.NODE_FOUND, 3))

    assert usual.seconds(stage(Step.SCHEDULING, 0), GPU) is None


def test_containers_are_told_apart() -> None:
    usual = learned(
        stage(Step.INITIALIZING, 0, "block-cloud-metadata"), stage(Step.PULLING, 2, "notebook")
    )

    assert usual.seconds(stage(Step.INITIALIZING, 0, "block-cloud-metadata"), GPU) == 2
    assert usual.seconds(stage(Step.INITIALIZING, 0, "other"), GPU) is None

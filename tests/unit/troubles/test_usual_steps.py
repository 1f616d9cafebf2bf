"""How long the steps of a start usually take."""

from datetime import UTC, datetime, timedelta

import pytest

from gpuspawner.troubles.pulls import Pulled, Pulling
from gpuspawner.troubles.steps import Stage, Step, UsualSteps

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def stage(
    step: Step, second: float | None, subject: str = "", image: Pulling | Pulled | None = None
) -> Stage:
    since = None if second is None else NOON + timedelta(seconds=second)
    return Stage(step, (0, 0), since, subject, image)


IMAGE = Pulled("a:1", seconds=40, with_waiting=60)
HERE = Pulled("a:1", was_there=True)
POOL = [stage(Step.NODE_STARTING, 10, "gpu"), stage(Step.NODE_FOUND, 190)]
PULL = [stage(Step.PULLING, None, image=IMAGE), stage(Step.STARTING, None)]
UNTIMED = [stage(Step.SCHEDULING, None), stage(Step.NODE_FOUND, 3), stage(Step.VOLUMES, None)]
FIRST = [stage(Step.INITIALIZING, 0, "block-cloud-metadata"), stage(Step.PULLING, 2, "notebook")]
VOLUMES = [stage(Step.VOLUMES, 0), stage(Step.PULLING, 8)]
ALREADY_THERE = [stage(Step.PULLING, 0, image=HERE), stage(Step.STARTING, 0)]
BACKWARDS = [stage(Step.SCHEDULING, 5), stage(Step.NODE_FOUND, 3)]


@pytest.mark.parametrize(
    ("earlier", "asked", "seconds"),
    [
        pytest.param(POOL, stage(Step.NODE_STARTING, 0, "gpu"), 180, id="until the next step"),
        pytest.param(POOL, stage(Step.NODE_STARTING, 0, "cpu"), None, id="each pool for itself"),
        pytest.param(POOL, stage(Step.NODE_FOUND, 0), None, id="the last one hasn't ended"),
        pytest.param(VOLUMES, stage(Step.VOLUMES, 0), 8, id="volumes"),
        pytest.param(
            PULL, stage(Step.PULLING, 0, image=Pulling("a:1")), 60, id="as the kubelet says"
        ),
        pytest.param(
            PULL, stage(Step.PULLING, 0, image=Pulling("a:2")), None, id="each image for itself"
        ),
        pytest.param(
            ALREADY_THERE, stage(Step.PULLING, 0, image=Pulling("a:1")), None, id="it was there"
        ),
        pytest.param(UNTIMED, stage(Step.SCHEDULING, 0), None, id="begun at an unknown time"),
        pytest.param(UNTIMED, stage(Step.NODE_FOUND, 0), None, id="ended at an unknown time"),
        pytest.param(BACKWARDS, stage(Step.SCHEDULING, 0), None, id="clocks that disagree"),
        pytest.param(
            FIRST, stage(Step.INITIALIZING, 0, "block-cloud-metadata"), 2, id="a container"
        ),
        pytest.param(FIRST, stage(Step.INITIALIZING, 0, "other"), None, id="another container"),
    ],
)
def test_a_step_takes_as_long_as_in_an_earlier_start(earlier, asked, seconds) -> None:
    usual = UsualSteps()
    usual.learn(earlier)

    assert usual.seconds(asked) == seconds

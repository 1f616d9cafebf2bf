"""What autoscalers have answered, and for how long that holds."""

from __future__ import annotations

from types import SimpleNamespace

from gpuspawner.scaling.outlook import Obstacle, Source, WhyNoNode
from gpuspawner.scaling.pools import REMEMBERED_SECONDS, AutoscalerRefusals

FULL = Obstacle(WhyNoNode.AT_MAXIMUM)
VAIN = Obstacle(WhyNoNode.IN_VAIN)


def test_a_no_holds_for_pods_of_the_same_shape_alone() -> None:
    refusals = AutoscalerRefusals()
    refusals.refused("shape", Source.KARPENTER, FULL, "now")

    assert refusals.obstacles("shape", "now") == {Source.KARPENTER: FULL}
    assert refusals.obstacles("other", "now") == {}


def test_a_no_ends_when_nodes_or_pools_change() -> None:
    refusals = AutoscalerRefusals()
    refusals.refused("shape", None, VAIN, "then")
    before = refusals.version

    assert refusals.obstacles("other", "now") == {}
    assert refusals.obstacles("shape", "then") == {}
    assert refusals.version > before


def test_a_no_that_is_said_again_changes_nothing_but_lasts_longer() -> None:
    refusals = AutoscalerRefusals()
    refusals.refused("shape", Source.CLUSTER_AUTOSCALER, FULL, "now")
    before = refusals.version

    refusals.refused("shape", Source.CLUSTER_AUTOSCALER, FULL, "now")
    assert refusals.version == before
    refusals.refused("shape", Source.CLUSTER_AUTOSCALER, VAIN, "now")
    assert refusals.version > before


def test_two_autoscalers_answers_are_kept_apart() -> None:
    refusals = AutoscalerRefusals()
    refusals.refused("shape", Source.KARPENTER, FULL, "now")
    refusals.refused("shape", Source.CLUSTER_AUTOSCALER, VAIN, "now")

    assert refusals.obstacles("shape", "now") == {
        Source.KARPENTER: FULL,
        Source.CLUSTER_AUTOSCALER: VAIN,
    }


def test_the_memory_is_bounded() -> None:
    refusals = AutoscalerRefusals()
    for number in range(1100):
        refusals.refused(number, None, VAIN, "now")

    assert refusals.obstacles(0, "now") == {}
    assert refusals.obstacles(1099, "now") == {None: VAIN}


def test_a_no_ends_with_time_which_is_a_change_for_those_who_keep_what_they_saw(
    monkeypatch,
) -> None:
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("gpuspawner.scaling.pools.time", clock)
    refusals = AutoscalerRefusals()
    refusals.refused("shape", None, VAIN, "now")
    before = refusals.version

    clock.now += REMEMBERED_SECONDS
    assert refusals.version == before
    clock.now += 1

    assert refusals.version > before
    assert refusals.obstacles("shape", "now") == {}

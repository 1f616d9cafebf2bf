"""What autoscalers have answered, and for how long that holds."""

from __future__ import annotations

from types import SimpleNamespace

from gpuspawner.scaling.outlook import Obstacle, Source, WhyNoNode
from gpuspawner.scaling.pools import Learned

FULL = Obstacle(WhyNoNode.AT_MAXIMUM)
VAIN = Obstacle(WhyNoNode.IN_VAIN)


def test_a_no_holds_for_pods_of_the_same_shape_alone() -> None:
    learned = Learned()
    learned.refused("shape", Source.KARPENTER, FULL, "now")

    assert learned.obstacles("shape", "now") == {Source.KARPENTER: FULL}
    assert learned.obstacles("other", "now") == {}


def test_a_no_ends_when_nodes_or_pools_change() -> None:
    learned = Learned()
    learned.refused("shape", None, VAIN, "then")
    before = learned.version

    assert learned.obstacles("shape", "now") == {}
    assert learned.obstacles("shape", "then") == {}
    assert learned.version > before


def test_a_no_ends_with_time() -> None:
    learned = Learned(seconds=-1)
    learned.refused("shape", None, VAIN, "now")

    assert learned.obstacles("shape", "now") == {}


def test_two_autoscalers_answers_are_kept_apart() -> None:
    learned = Learned()
    learned.refused("shape", Source.KARPENTER, FULL, "now")
    learned.refused("shape", Source.CLUSTER_AUTOSCALER, VAIN, "now")

    assert learned.obstacles("shape", "now") == {
        Source.KARPENTER: FULL,
        Source.CLUSTER_AUTOSCALER: VAIN,
    }


def test_the_memory_is_bounded() -> None:
    learned = Learned()
    for number in range(1100):
        learned.refused(number, None, VAIN, "now")

    assert learned.obstacles(0, "now") == {}
    assert learned.obstacles(1099, "now") == {None: VAIN}


def test_a_no_stays_forgotten_when_the_nodes_are_as_before() -> None:
    learned = Learned()
    learned.refused("shape", None, VAIN, "then")
    learned.obstacles("other", "now")

    assert learned.obstacles("shape", "then") == {}


def test_a_no_that_ends_with_time_is_a_change_for_those_who_keep_what_they_saw(monkeypatch) -> None:
    clock = SimpleNamespace(now=1000.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("gpuspawner.scaling.pools.time", clock)
    learned = Learned(seconds=60)
    learned.refused("shape", None, VAIN, "now")
    before = learned.version

    clock.now += 60
    assert learned.version == before
    clock.now += 1

    assert learned.version > before

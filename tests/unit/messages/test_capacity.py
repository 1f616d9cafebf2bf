"""What administrators read of many servers."""

from gpuspawner.messages.capacity import remarks
from gpuspawner.preflight.capacity import Headroom
from gpuspawner.scaling.outlook import Obstacle, WhyNoNode


def test_only_pools_that_could_have_helped_are_told_of():
    obstacles = (
        Obstacle(WhyNoNode.NO_SUCH_MACHINE, "cpu"),
        Obstacle(WhyNoNode.AT_MAXIMUM, "gpu"),
    )

    assert [*remarks(Headroom(1, obstacles=obstacles), "", "")] == [
        "Pool gpu: No more machines can be added: their number is at its maximum."
    ]

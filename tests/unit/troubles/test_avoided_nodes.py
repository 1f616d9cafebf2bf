"""The nodes whose GPUs have failed somebody's server."""

from gpuspawner.troubles.avoided_nodes import BROKEN, SECONDS, AvoidedNodes
from gpuspawner.troubles.trouble import Kind
from tests.unit.makers.clocks import Clock


def test_only_the_owner_avoids_a_node():
    avoided = AvoidedNodes()
    avoided.avoid("alice", "a")

    assert avoided.of("alice") == ("a",)
    assert avoided.of("bob") == ()


def test_no_node_is_avoided_for_what_was_the_request_s_fault():
    assert Kind.ONE_SHARE not in BROKEN
    assert Kind.DEVICE_BROKEN in BROKEN


def test_a_node_is_avoided_for_a_while_after_its_last_failure():
    clock = Clock()
    avoided = AvoidedNodes(clock)
    avoided.avoid("alice", "a")
    avoided.avoid("alice", "b")
    clock.now += SECONDS - 1
    avoided.avoid("alice", "a")
    clock.now += 1

    assert avoided.of("alice") == ("a",)


def test_the_oldest_nodes_and_owners_are_forgotten_first():
    avoided = AvoidedNodes()
    for number in range(9):
        avoided.avoid("alice", f"n{number}")
    assert avoided.of("alice") == tuple(f"n{number}" for number in range(1, 9))

    for number in range(999):
        avoided.avoid(f"user-{number}", "a")
    assert avoided.of("alice")
    avoided.avoid("one more", "a")

    assert not avoided.of("alice")
    assert avoided.of("user-0") == ("a",)

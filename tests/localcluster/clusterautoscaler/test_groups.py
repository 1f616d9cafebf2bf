"""The played cloud: machines that become nodes, or are refused, and back-offs."""

from __future__ import annotations

from typing import Any

from localcluster import NodeGroup, Scaling
from localcluster.client import Object
from localcluster.clusterautoscaler.groups import Backoff, Group
from localcluster.nodes import node_object, starting_node

ALLOCATABLE = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "1"}


def group(**scaling: Any) -> Group:
    settings = Scaling(**{"max_size": 3, "provision_seconds": 60.0, **scaling})
    shape = NodeGroup("l4", 0, ALLOCATABLE, scaling=settings)
    return Group(shape, settings, Backoff(first=300.0, longest=1800.0))


def node(name: str, of: Group) -> Object:
    return node_object(name, of.shape)


def test_a_machine_becomes_a_node_after_its_time() -> None:
    l4 = group()

    l4.request(2, now=100.0)

    assert l4.target == 2
    assert l4.due(159.0) == []
    assert [machine.name for machine in l4.due(160.0)] == ["l4-0", "l4-1"]


def test_a_new_machine_takes_no_name_that_a_node_has() -> None:
    l4 = group()
    l4.see([node("l4-0", l4), node("l4-2", l4)])

    l4.request(1, now=0.0)

    assert [machine.name for machine in l4.machines] == ["l4-1"]


def test_a_node_without_its_devices_is_still_on_its_way() -> None:
    l4 = group()
    l4.request(1, now=0.0)

    l4.see([starting_node("l4-0", l4.shape, device_seconds=20.0)])
    assert (l4.target, len(l4.ready()), l4.upcoming(61.0)) == (1, 0, 1)
    assert l4.is_growing

    l4.see([node("l4-0", l4)])
    assert (len(l4.ready()), l4.upcoming(81.0)) == (1, 0)
    assert not l4.is_growing


def test_a_node_that_is_deleted_makes_room() -> None:
    l4 = group(max_size=1)
    l4.see([node("l4-0", l4)])
    assert l4.room == 0

    l4.see([])

    assert l4.room == 1


def test_what_the_cloud_does_not_have_is_refused_and_the_target_falls() -> None:
    l4 = group(stock=1, failure_seconds=5.0)
    l4.request(2, now=0.0)

    assert l4.take_refused(4.0) == []
    refused = l4.take_refused(5.0)

    assert [machine.name for machine in refused] == ["l4-1"]
    assert l4.target == 1
    assert l4.upcoming(6.0) == 0, "during a back-off nobody waits for the group"
    assert l4.backoff.until == 305.0


def test_each_failure_doubles_the_back_off_up_to_the_longest() -> None:
    backoff = Backoff(first=300.0, longest=1000.0)
    waits = []
    now = 0.0
    for _ in range(4):
        backoff.fail(now)
        waits.append(backoff.until - now)
        now = backoff.until

    assert waits == [300.0, 600.0, 1000.0, 1000.0]


def test_a_second_failure_at_the_same_time_does_not_double_the_back_off() -> None:
    backoff = Backoff(first=300.0, longest=1000.0)
    backoff.fail(0.0)

    backoff.fail(1.0)

    assert backoff.until == 301.0


def test_a_success_forgets_the_failures() -> None:
    l4 = group(stock=1)
    l4.request(2, now=0.0)
    l4.take_refused(5.0)

    l4.see([])
    l4.see([node("l4-0", l4)])

    assert l4.backoff.until == 0.0

"""Nodes to come are counted: nobody is promised one that another takes."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gpuspawner.preflight.verdicts import Subject
from gpuspawner.scaling.outlook import CannotScaleUp, CanScaleUp, MayScaleUp, Source, Why
from tests.unit.preflight.nodes import busy_node, declared, group
from tests.unit.scaling.groups import status, why
from tests.unit.scaling.outlooks import (
    T4,
    Cluster,
    Plain,
    autoscalers,
    node,
    outlook,
    plain_pod,
    pod,
    state,
)


def test_seven_people_for_two_gpus_that_can_come() -> None:
    objects = autoscalers(status=status(group("n-1", 0, 1), group("core", 1, 1)))
    core = node("core-1", 0, labels={})
    seen = node("n-1-x", 2, labels=T4, unschedulable=True)
    cluster = Cluster(state(core, seen), objects, "detect")
    told = []
    for name in "abcdefg":
        told.append(cluster.outlook(pod(name)))
        if not isinstance(told[-1], CannotScaleUp):
            cluster.reservations.take_of_new_node(("jhub", name), Subject(pod(name)))

    assert [isinstance(it, CanScaleUp) for it in told] == [True, True] + [False] * 5
    assert {found for it in told[2:] for found in why(it)} == {Why.TAKEN}


@settings(max_examples=60, deadline=None)
@given(
    gpus=st.integers(1, 4),
    left=st.integers(1, 3),
    asks=st.lists(st.tuples(st.integers(1, 4), st.sampled_from([1, 8, 20, 32])), max_size=7),
)
def test_all_who_are_promised_a_node_get_one_under_any_placement(
    gpus: int, left: int, asks: list[tuple[int, int]]
) -> None:
    cluster = Cluster(state(busy_node(gpus)))
    promised: list[tuple[int, int]] = []
    for number, (count, memory) in enumerate(asks):
        asked = pod(f"p{number}", count, f"{memory}Gi")
        found = cluster.outlook(asked, declared(left + 1))
        if isinstance(found, CanScaleUp) and count <= gpus:
            promised.append((count, memory))
        if not isinstance(found, CannotScaleUp):
            cluster.reservations.take_of_new_node(("jhub", f"p{number}"), Subject(asked))
            if not isinstance(found, CanScaleUp):
                return  # a trial may take room from no promise that was made before it

    for order in set(permutations(promised)) if len(promised) < 6 else {tuple(promised)}:
        assert worst_fit(list(order), gpus, left)
        assert first_fit(list(order), gpus, left)


def worst_fit(order: list[tuple[int, int]], gpus: int, left: int) -> bool:
    return place(order, gpus, left, lambda free: -free[0])


def first_fit(order: list[tuple[int, int]], gpus: int, left: int) -> bool:
    return place(order, gpus, left, lambda _: 0)


def place(order: list[tuple[int, int]], gpus: int, left: int, rank: Any) -> bool:
    nodes = [(gpus, 32)] * left
    for count, memory in order:
        fitting = [it for it in nodes if it[0] >= count and it[1] >= memory]
        if not fitting:
            return False
        best = min(fitting, key=rank)
        nodes[nodes.index(best)] = (best[0] - count, best[1] - memory)
    return True


def test_a_declared_pool_decides_if_the_pools_in_sight_make_no_such_machine() -> None:
    taints = [{"key": "other", "effect": "NoSchedule"}]
    karpenters = {"metadata": {"name": "cpu"}, "spec": {"template": {"spec": {"taints": taints}}}}
    objects = autoscalers((karpenters,))

    assert isinstance(outlook(state(), pod(), declared(1), objects, "detect"), CanScaleUp)
    assert why(outlook(state(), pod(), None, objects, "detect")) == [Why.NO_SUCH_MACHINE]


def test_a_pool_in_sight_that_has_ended_outweighs_the_declaration() -> None:
    objects = autoscalers(status=status(group("gpu", 1, 1)))
    present = node("gpu-x1y2z", 1, labels=T4, unschedulable=True)

    assert why(outlook(state(present), pod(), declared(4), objects, "detect")) == [Why.AT_MAXIMUM]


def test_a_declared_pool_decides_if_nobody_knows_the_groups() -> None:
    objects = autoscalers(status=status(group("gpu", 0, 1)))

    assert isinstance(outlook(state(), pod(), declared(1), objects, "detect"), CanScaleUp)


def test_pods_that_can_go_to_another_pool_take_nothing_from_this_one() -> None:
    objects = autoscalers(status=status(group("gpu", 0, 1), group("cpu", 1, 9)))
    nodes = (
        node("gpu-1", 1, labels=T4, unschedulable=True),
        node("cpu-1", 0, labels={}, unschedulable=True),
    )
    cluster = Cluster(state(*nodes), objects, "detect")
    for name in "bcd":
        cluster.state.put(pod(name, gpus=0, memory="20Gi", selector={}))

    assert isinstance(cluster.outlook(pod(memory="20Gi")), CanScaleUp | MayScaleUp)


def test_a_group_that_nobody_has_seen_may_hold_more_than_those_in_sight() -> None:
    objects = autoscalers(status=status(group("gpu", 0, 1), group("new", 0, 9)))
    cluster = Cluster(state(node("gpu-1", 1, labels=T4, unschedulable=True)), objects, "detect")
    cluster.state.put(pod("b"))

    assert cluster.outlook(pod("c")) == MayScaleUp(Source.CLUSTER_AUTOSCALER)


def test_a_pod_that_no_node_can_ever_hold_waits_for_none() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "missing"}, "name": "home"}

    assert outlook(state(), pod(volumes=[claim]), autoscaling="always") == CannotScaleUp()


def test_a_starting_node_of_a_pool_that_nobody_knows_is_on_its_way() -> None:
    young = node("y", 0, labels=T4, created=datetime.now(UTC).isoformat())

    assert outlook(state(young), pod(), autoscaling="always") == MayScaleUp(
        Source.CONFIGURATION, on_its_way=True
    )


def test_a_crowd_of_pending_pods_makes_no_promise_and_no_refusal() -> None:
    cluster = Cluster(state(busy_node(1)))
    for number in range(300):
        cluster.state.put(pod(f"batch-{number}"))

    assert isinstance(cluster.outlook(pod("a"), declared(3)), MayScaleUp)


def test_a_class_with_volumes_of_their_own_is_judged_in_a_moment() -> None:
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    people = [f"user-{number}" for number in range(200)]
    known = state(
        node("n-1-x", 2, labels=T4, unschedulable=True),
        pods=tuple(_with_volume(name) for name in people),
        persistentVolumeClaims=tuple(
            {
                "metadata": {"name": name, "namespace": "jhub", **bound},
                "spec": {"volumeName": name, "storageClassName": "s"},
            }
            for name in people
        ),
        persistentVolumes=tuple(
            {
                "metadata": {"name": name},
                "spec": {"csi": {"driver": "d", "volumeHandle": name}, "storageClassName": "s"},
            }
            for name in people
        ),
    )
    cluster = Cluster(known, autoscalers(status=status(group("n-1", 1, 300))), "detect")
    cluster.outlook(pod("a"))
    started = time.perf_counter()

    assert isinstance(cluster.outlook(pod("a")), CanScaleUp)
    assert time.perf_counter() - started < 0.5


def _with_volume(name: str) -> Plain:
    volume = {"name": "home", "persistentVolumeClaim": {"claimName": name}}
    return plain_pod(name, volumes=[volume])


def test_a_placeholder_that_waits_takes_no_node_from_a_person() -> None:
    objects = autoscalers(status=status(group("n-1", 1, 2)))
    seen = node("n-1-x", 1, labels=T4, unschedulable=True)

    for priority, expected in ((-10, CanScaleUp), (0, CannotScaleUp), (5, CannotScaleUp)):
        known = state(seen, pods=(plain_pod("placeholder", priority=priority),))
        found = outlook(known, pod("a", priority=0), objects=objects, autoscaling="detect")
        assert isinstance(found, expected), priority


def test_a_pod_that_no_new_node_would_help_takes_none_from_others() -> None:
    missing = {"name": "home", "persistentVolumeClaim": {"claimName": "nobody-makes-it"}}
    template = {"metadata": {"labels": T4}}
    pool = {
        "metadata": {"name": "k"},
        "spec": {"template": template, "limits": {"nvidia.com/gpu": "2"}},
        "status": {"resources": {"nvidia.com/gpu": "1"}},
    }
    labels = {"karpenter.sh/nodepool": "k", "node.kubernetes.io/instance-type": "p"}
    known = state(busy_node(1, **labels), pods=(plain_pod("stuck", volumes=[missing]),))

    assert isinstance(outlook(known, pod(), None, autoscalers((pool,)), "detect"), CanScaleUp)

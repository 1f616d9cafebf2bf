"""Nodes to come are counted: nobody is promised one that another takes."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuspawner.kube.autoscaling import NodePool
from gpuspawner.kube.objects import convert
from gpuspawner.offers import Accelerator, ScaleUp
from gpuspawner.preflight.verdicts import Subject
from gpuspawner.scaling.outlook import CannotScaleUp, CanScaleUp, MayScaleUp, Obstacle, Source, Why
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

EKS = "eks.amazonaws.com/nodegroup"


def group(name: str, target: int, most: int) -> str:
    return f"- name: {name}\n  health: {{cloudProviderTarget: {target}, maxSize: {most}}}\n"


def status(*groups: str) -> str:
    return "autoscalerStatus: Running\nnodeGroups:\n" + "".join(groups)


def declared(most: int) -> Accelerator:
    return Accelerator("t4", "T4", "nvidia.com/gpu", node_selector=T4, scale_up=ScaleUp(most, 8))


def busy_node(gpus: int, memory: str = "32Gi", **labels: str) -> Plain:
    return node("n", gpus, memory, {**T4, **labels}, unschedulable=True)


def whys(found: object) -> list[Why]:
    assert isinstance(found, CannotScaleUp), found
    return [it.why for it in found.obstacles]


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
    assert {why for it in told[2:] for why in whys(it)} == {Why.TAKEN}


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
    assert whys(outlook(state(), pod(), None, objects, "detect")) == [Why.NO_SUCH_MACHINE]


def test_a_pool_in_sight_that_has_ended_outweighs_the_declaration() -> None:
    objects = autoscalers(status=status(group("gpu", 1, 1)))
    present = node("gpu-x1y2z", 1, labels=T4, unschedulable=True)

    assert whys(outlook(state(present), pod(), declared(4), objects, "detect")) == [Why.AT_MAXIMUM]


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


def test_what_one_user_learned_holds_for_the_next_with_the_same_needs() -> None:
    cluster = Cluster(state(), autoscaling="always")
    full = Obstacle(Why.AT_MAXIMUM)
    cluster.to_come.remember(Subject(pod("a")), Source.CLUSTER_AUTOSCALER, full)

    assert cluster.outlook(pod("b")) == CannotScaleUp((full,))
    assert cluster.outlook(pod("c", gpus=2)) == MayScaleUp(Source.CONFIGURATION)


def home(user: str, zone: str) -> tuple[Plain, Plain]:
    claim = {
        "metadata": {"name": f"claim-{user}", "namespace": "jhub"},
        "spec": {"volumeName": f"pv-{user}", "storageClassName": "ssd"},
    }
    term = {
        "matchExpressions": [
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
        ]
    }
    volume = {
        "metadata": {"name": f"pv-{user}"},
        "spec": {
            "storageClassName": "ssd",
            "claimRef": {"namespace": "jhub", "name": f"claim-{user}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    claim["metadata"]["annotations"] = bound  # type: ignore[index]
    return claim, volume


def test_a_no_for_a_volume_in_one_zone_says_nothing_about_a_volume_in_another() -> None:
    homes = {"a": home("a", "a"), "b": home("b", "b"), "c": home("c", "a")}
    known = state(
        persistentVolumeClaims=tuple(claim for claim, _ in homes.values()),
        persistentVolumes=tuple(volume for _, volume in homes.values()),
    )
    cluster = Cluster(known, autoscaling="always")

    def asks(user: str) -> Any:
        claim = {"claimName": f"claim-{user}"}
        return pod(user, volumes=[{"name": "home", "persistentVolumeClaim": claim}])

    full = Obstacle(Why.AT_MAXIMUM)
    cluster.to_come.remember(Subject(asks("a")), Source.CLUSTER_AUTOSCALER, full)

    assert cluster.outlook(asks("b")) == MayScaleUp(Source.CONFIGURATION)
    assert cluster.outlook(asks("c")) == CannotScaleUp((full,))


@pytest.mark.parametrize("named", [{"storageClassName": "standard"}, {}])
def test_what_one_new_user_learned_holds_for_the_next_new_user(named: dict[str, str]) -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    standard = {
        "metadata": {"name": "standard", "annotations": default},
        "provisioner": "example.com/disks",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    cluster = Cluster(state(storageClasses=(standard,)), autoscaling="always")

    def claim(user: str, **spec: str) -> Plain:
        return {"metadata": {"name": f"claim-{user}", "namespace": "jhub"}, "spec": spec}

    def asks(user: str, **spec: str) -> Subject:
        home = {"claimName": f"claim-{user}"}
        asked = pod(user, volumes=[{"name": "home", "persistentVolumeClaim": home}])
        return Subject(asked, (claim(user, **spec),))

    full = Obstacle(Why.AT_MAXIMUM)
    created = convert("PersistentVolumeClaim", claim("a", storageClassName="standard"))
    cluster.state.put(created)
    cluster.to_come.remember(asks("a"), Source.CLUSTER_AUTOSCALER, full)

    def found(user: str, **spec: str) -> object:
        return cluster.to_come.outlook(("jhub", user), asks(user, **spec), None)

    assert found("b", **named) == CannotScaleUp((full,))


def test_what_was_learned_ends_with_a_new_node() -> None:
    cluster = Cluster(state(), autoscaling="always")
    cluster.to_come.remember(Subject(pod()), None, Obstacle(Why.NO_ANSWER))
    assert whys(cluster.outlook(pod())) == [Why.NO_ANSWER]

    other = state(node("new", labels={})).nodes["new"].node
    assert other is not None
    cluster.state.put(other)

    assert cluster.outlook(pod()) == MayScaleUp(Source.CONFIGURATION)


def test_what_was_learned_ends_when_a_pool_becomes_ready() -> None:
    def pool(ready: str) -> NodePool:
        conditions = [{"type": "Ready", "status": ready}]
        spec = {"template": {"metadata": {"labels": T4}}}
        plain = {"metadata": {"name": "k"}, "spec": spec, "status": {"conditions": conditions}}
        return msgspec.convert(plain, NodePool)

    objects = autoscalers()
    objects.put(pool("False"))
    cluster = Cluster(state(), objects, "detect")
    cluster.to_come.remember(Subject(pod()), Source.KARPENTER, Obstacle(Why.REFUSED))
    assert Why.REFUSED in whys(cluster.outlook(pod()))

    objects.put(pool("True"))

    assert cluster.outlook(pod()) == MayScaleUp(Source.KARPENTER)


def test_a_no_about_one_pod_leaves_nodes_on_their_way_to_those_they_are_for() -> None:
    objects = autoscalers(status=status(group("gpu", 2, 2)))
    seen = node("gpu-1", 1, labels=T4, unschedulable=True)
    cluster = Cluster(state(seen), objects, "detect")
    cluster.to_come.remember(Subject(pod("b")), Source.CLUSTER_AUTOSCALER, Obstacle(Why.AT_MAXIMUM))

    assert isinstance(cluster.outlook(pod("a")), CanScaleUp)


def test_what_a_pool_says_itself_stays_after_an_answer_about_all_pools() -> None:
    backs_off = group("gpu", 0, 1) + "  scaleUp: {status: Backoff}\n"
    objects = autoscalers(status=status(backs_off, group("other", 1, 1)))
    cluster = Cluster(state(), objects, "detect")
    cluster.to_come.remember(Subject(pod("a")), Source.CLUSTER_AUTOSCALER, Obstacle(Why.AT_MAXIMUM))

    assert Why.STOCK_OUT in whys(cluster.outlook(pod("b")))


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

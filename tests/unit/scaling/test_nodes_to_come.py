"""Nodes to come are counted: nobody is promised one that another takes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuspawner.kube.autoscaling import NodePool
from gpuspawner.kube.objects import convert
from gpuspawner.kube.pods import Pod
from gpuspawner.offers.types import Accelerator
from gpuspawner.scaling import new_nodes, nodes_to_come
from gpuspawner.scaling.new_nodes import Future, Judged, could_serve
from gpuspawner.scaling.node_pool import Growth, like
from gpuspawner.scaling.outlook import (
    CannotScaleUp,
    CanScaleUp,
    MayScaleUp,
    Obstacle,
    Source,
    WhyNoNode,
)
from gpuspawner.scheduling import verdicts as verdicts_module
from gpuspawner.scheduling.evaluate import evaluate, lacks_node
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Verdict
from gpuspawner.scheduling.verdicts import Subject
from tests.unit.makers.groups import status
from tests.unit.makers.outlooks import (
    T4,
    Cluster,
    Plain,
    asks,
    autoscalers,
    declared,
    node,
    outlook,
    plain_pod,
    pod,
    state,
    why,
)
from tests.unit.makers.storage import WAIT

pytestmark = pytest.mark.usefixtures("clock")


def group(name: str, target: int, most: int) -> str:
    return f"- name: {name}\n  health: {{cloudProviderTarget: {target}, maxSize: {most}}}\n"


def busy_node(gpus: int, **labels: str) -> Plain:
    return node("n", gpus, labels={**T4, **labels}, unschedulable=True)


def growing(most: int, gpus: int = 1, *, target: int = 1, **kinds: Any) -> Cluster:
    """Return a group that has shown one node, with so many GPUs and no room, and may have more."""
    seen = node("n-1-x", gpus, labels=T4, unschedulable=True)
    objects = autoscalers(status=status(group("n-1", target, most)))
    return Cluster(state(seen, **kinds), objects, "detect")


FULL = Obstacle(WhyNoNode.AT_MAXIMUM)


def home_of(user: str) -> Plain:
    """A volume of a claim of the user's name."""
    return {"name": "home", "persistentVolumeClaim": {"claimName": user}}


def bound(user: str, **volume: object) -> tuple[Plain, Plain]:
    """A user's claim, and the volume that is bound to it."""
    claim = {
        "metadata": {
            "name": user,
            "namespace": "jhub",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": f"pv-{user}", "storageClassName": "ssd"},
    }
    spec = {
        "storageClassName": "ssd",
        "csi": {"driver": "d", "volumeHandle": user},
        "claimRef": {"namespace": "jhub", "name": user},
        **volume,
    }
    return claim, {"metadata": {"name": f"pv-{user}"}, "spec": spec}


def storage(*bound: tuple[Plain, Plain]) -> dict[str, tuple[Plain, ...]]:
    claims, volumes = zip(*bound, strict=True)
    return {"persistentVolumeClaims": claims, "persistentVolumes": volumes}


SERVED = {"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}}
N_1 = {"pool": "n-1"}


def pool_by_claim(most: int, *pods: Plain, labels: Plain = N_1, **kinds: Any) -> Cluster:
    """A pool of which nothing shows that its nodes have GPUs; its one node is full."""
    full = plain_pod("theirs", 0, "30Gi", nodeName="n-1-x")
    known = {"pods": (full, *pods), "deviceClasses": (SERVED,), **kinds}
    objects = autoscalers(status=status(group("n-1", 1, most)))
    return Cluster(state(node("n-1-x", 0, labels=labels), **known), objects, "detect")


def test_a_pool_may_bring_a_node_whose_devices_only_claims_give() -> None:
    assert isinstance(pool_by_claim(2).outlook(pod(selector=N_1)), MayScaleUp)
    assert isinstance(pool_by_claim(2).outlook(pod(gpus=0, selector=N_1)), CanScaleUp)
    unread = pool_by_claim(2, deviceClasses=None)
    assert isinstance(unread.outlook(pod(selector=N_1)), MayScaleUp)

    assert why(pool_by_claim(1).outlook(pod(selector=N_1))) == [WhyNoNode.AT_MAXIMUM]
    none = pool_by_claim(2, deviceClasses=())
    assert isinstance(none.outlook(pod(selector=N_1)), CannotScaleUp)


def test_nobody_knows_how_many_people_share_nodes_whose_devices_only_claims_give() -> None:
    cluster = pool_by_claim(3, plain_pod("pending", selector=N_1))
    for name, memory in zip("abcdefg", (*["1Gi"] * 6, "31Gi"), strict=True):
        asked = pod(name, memory=memory, selector=N_1)
        assert isinstance(cluster.outlook(asked), MayScaleUp)
        cluster.reservations.take_of_new_node(("jhub", name), Subject(asked))
    assert why(cluster.outlook(pod("h", memory="31Gi", selector=N_1))) == [WhyNoNode.TAKEN]


def test_a_node_on_its_way_whose_devices_only_claims_give_may_come() -> None:
    away = node("n-1-y", 0, labels=N_1, unschedulable=True)
    full = plain_pod("theirs", 0, "30Gi", nodeName="n-1-x")
    known = state(node("n-1-x", 0, labels=N_1), away, pods=(full,), deviceClasses=(SERVED,))
    growth = Growth(Source.CLUSTER_AUTOSCALER, "n-1", 2, coming=(like(known.nodes["n-1-y"]),))
    judged = Judged.of(known, Subject(pod(selector=N_1)))
    closed = replace(growth, is_complete=True, obstacle=FULL)

    assert Future.of(closed, judged, 1).is_possible
    assert could_serve(closed, judged)
    assert not Future.of(closed, Judged.of(known, Subject(pod(selector=T4))), 1).is_possible


def test_karpenter_may_make_a_node_by_claim_where_it_has_made_none() -> None:
    zone = "topology.kubernetes.io/zone"
    made = {"karpenter.sh/nodepool": "k", "node.kubernetes.io/instance-type": "p", zone: "a"}
    types = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p"]}
    pool = {
        "metadata": {"name": "k"},
        "spec": {"template": {"spec": {"requirements": [types]}}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    full = plain_pod("theirs", 0, "30Gi", nodeName="n")
    for classes, kind in (((SERVED,), MayScaleUp), ((), CannotScaleUp)):
        known = state(node("n", 0, labels=made), pods=(full,), deviceClasses=classes)
        found = outlook(known, pod(selector={zone: "b"}), None, autoscalers((pool,)), "detect")
        assert isinstance(found, kind)


@pytest.mark.parametrize(("gpus", "comes"), [(1, True), (2, False)])
def test_a_node_that_gives_a_container_one_share_only_is_none_for_who_asks_for_several(
    gpus: int, comes: bool
) -> None:
    shared = {**T4, "nvidia.com/gpu.sharing-strategy": "mps"}
    full = node("n-1-x", 4, labels=shared, unschedulable=True)
    cluster = Cluster(state(full), autoscalers(status=status(group("n-1", 1, 3))), "detect")

    assert isinstance(cluster.outlook(pod(gpus=gpus)), CanScaleUp) is comes


def test_seven_people_for_two_gpus_that_can_come() -> None:
    cluster = growing(1, gpus=2, target=0)
    told = []
    for name in "abcdefg":
        told.append(cluster.outlook(pod(name)))
        if not isinstance(told[-1], CannotScaleUp):
            cluster.reservations.take_of_new_node(("jhub", name), Subject(pod(name)))

    assert [isinstance(it, CanScaleUp) for it in told] == [True, True] + [False] * 5
    assert {found for it in told[2:] for found in why(it)} == {WhyNoNode.TAKEN}


@settings(max_examples=60, deadline=None)
@given(
    gpus=st.integers(1, 4),
    left=st.integers(1, 3),
    asks=st.lists(st.tuples(st.integers(1, 4), st.sampled_from([1, 8, 20, 32])), max_size=7),
)
def test_all_who_are_promised_a_node_get_one_under_any_placement(gpus, left, asks) -> None:
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
        for rank in (lambda free: -free[0], lambda _: 0):  # worst fit, and first fit
            assert all_fit(list(order), gpus, left, rank)


def all_fit(order: list[tuple[int, int]], gpus: int, left: int, rank: Any) -> bool:
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
    assert why(outlook(state(), pod(), None, objects, "detect")) == [WhyNoNode.NO_SUCH_MACHINE]


def test_a_pool_in_sight_that_has_ended_outweighs_the_declaration() -> None:
    assert why(growing(1).outlook(pod(), declared(4))) == [WhyNoNode.AT_MAXIMUM]


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

    assert cluster.outlook(pod("c")) == MayScaleUp(Source.CLUSTER_AUTOSCALER, is_listed=True)


def test_a_pod_that_no_node_can_ever_hold_waits_for_none() -> None:
    asked = pod(volumes=[home_of("nobody")])

    assert outlook(state(), asked, autoscaling="always") == CannotScaleUp()


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


@pytest.mark.parametrize(
    ("offered", "looked"), [(declared(3), 3), (None, 0)], ids=["a pool", "no pool"]
)
def test_a_crowd_of_pending_pods_is_looked_through_once_and_only_if_a_node_can_come(
    offered: Accelerator | None, looked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A form asks for each accelerator, whenever the cluster changes."""
    crowd = tuple(plain_pod(name, 8) for name in "xyz")
    cluster = Cluster(state(busy_node(2), pods=crowd))
    seen: list[object] = []

    def counted(it: object) -> bool:
        seen.append(it)
        return True

    monkeypatch.setattr(nodes_to_come, "may_be_bound", counted)

    for gpus in (1, 2, 4):
        cluster.outlook(pod("a", gpus), offered)

    assert len(seen) == looked


def test_of_a_crowd_of_different_pending_pods_no_more_are_judged_than_decide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A verdict takes milliseconds if there are a thousand nodes, so none is made of them."""
    crowd = tuple(plain_pod(f"b-{it}", 8, f"{1000 + it}Mi", priority=0) for it in range(2000))
    cluster = Cluster(state(busy_node(2), pods=crowd))
    seen: list[Pod] = []
    verdicts: list[Pod] = []

    def counted(state: ClusterState, pod: Pod) -> bool:
        seen.append(pod)
        return lacks_node(state, pod)

    def judged(state: ClusterState, pod: Pod, **more: Any) -> Verdict:
        verdicts.append(pod)
        return evaluate(state, pod, **more)

    monkeypatch.setattr(verdicts_module, "lacks_node", counted)
    monkeypatch.setattr(verdicts_module, "evaluate", judged)

    for gpus in (1, 2, 4):
        assert isinstance(cluster.outlook(pod("a", gpus, priority=0), declared(3)), MayScaleUp)
    assert len(seen) < 300

    seen.clear()
    assert isinstance(cluster.outlook(pod("a", priority=5), declared(3)), CanScaleUp)
    assert not seen, "those that make way needn't be judged"
    assert len(verdicts) < 5


def test_of_a_class_with_volumes_of_their_own_only_one_is_judged(monkeypatch) -> None:
    people = [f"user-{number}" for number in range(200)]
    pods = tuple(plain_pod(name, volumes=[home_of(name)]) for name in people)
    cluster = growing(300, gpus=2, pods=pods, **storage(*map(bound, people)))
    judged, of = [], Judged.of

    def counted(known, subject):
        judged.append(subject)
        return of(known, subject)

    monkeypatch.setattr(Judged, "of", counted)

    assert isinstance(cluster.outlook(pod("a")), CanScaleUp)
    assert len(judged) == 1, "one of the class, beside the pod that asks"


def test_no_node_surely_comes_for_a_server_whose_home_another_one_will_have_alone() -> None:
    (claim, disk), other = bound("home"), "another"
    claim["spec"]["accessModes"] = ["ReadWriteOncePod"]
    cluster = growing(9, gpus=8, **storage((claim, disk), bound(other)))
    cluster.reservations.take_of_new_node(
        ("jhub", "a"), Subject(pod("a", volumes=[home_of("home")]))
    )

    assert isinstance(cluster.outlook(pod("b", volumes=[home_of("home")])), MayScaleUp)
    assert isinstance(cluster.outlook(pod("b", volumes=[home_of(other)])), CanScaleUp)


def test_nor_does_it_if_the_other_one_is_among_many_whose_homes_will_be_made() -> None:
    cluster = growing(9, gpus=8, storageClasses=(WAIT,))

    def server(name: str, home: str) -> Subject:
        spec: Plain = {"accessModes": ["ReadWriteOncePod"], "storageClassName": "wait"}
        claim: Plain = {"metadata": {"name": home, "namespace": "jhub"}, "spec": spec}
        return Subject(pod(name, volumes=[home_of(home)]), (claim,))

    for name in "abc":
        cluster.reservations.take_of_new_node(("jhub", name), server(name, f"home-{name}"))

    for home, expected in (("home-a", MayScaleUp), ("home-c", MayScaleUp), ("new", CanScaleUp)):
        found = cluster.to_come.outlook(("jhub", "d"), server("d", home), None)
        assert isinstance(found, expected), home


@pytest.mark.parametrize(
    ("priority", "expected"), [(-10, CanScaleUp), (0, CannotScaleUp), (5, CannotScaleUp)]
)
def test_a_placeholder_that_waits_takes_no_node_from_a_person(priority, expected) -> None:
    cluster = growing(2, pods=(plain_pod("placeholder", priority=priority),))

    assert isinstance(cluster.outlook(pod("a", priority=0)), expected)


def test_a_pod_that_no_new_node_would_help_takes_none_from_others() -> None:
    template = {"metadata": {"labels": T4}}
    pool = {
        "metadata": {"name": "k"},
        "spec": {"template": template, "limits": {"nvidia.com/gpu": "2"}},
        "status": {"resources": {"nvidia.com/gpu": "1"}},
    }
    labels = {"karpenter.sh/nodepool": "k", "node.kubernetes.io/instance-type": "p"}
    known = state(busy_node(1, **labels), pods=(plain_pod("stuck", volumes=[home_of("nobody")]),))

    assert isinstance(outlook(known, pod(), None, autoscalers((pool,)), "detect"), CanScaleUp)


# What an autoscaler answered to one pod holds for those with the same needs


def test_what_one_user_learned_holds_for_the_next_with_the_same_needs() -> None:
    cluster = Cluster(state(), autoscaling="always")
    cluster.to_come.remember(Subject(pod("a")), Source.CLUSTER_AUTOSCALER, FULL)

    assert cluster.outlook(pod("b")) == CannotScaleUp((FULL,))
    assert cluster.outlook(pod("c", gpus=2)) == MayScaleUp(Source.CONFIGURATION)


def in_zone(zone: str) -> Plain:
    line = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [line]}]}}


def test_a_no_for_a_volume_in_one_zone_says_nothing_about_a_volume_in_another() -> None:
    zones = {"a": "a", "b": "b", "c": "a"}
    homes = storage(*(bound(user, nodeAffinity=in_zone(zone)) for user, zone in zones.items()))
    cluster = Cluster(state(**homes), autoscaling="always")
    cluster.to_come.remember(
        Subject(pod("a", volumes=[home_of("a")])), Source.CLUSTER_AUTOSCALER, FULL
    )

    assert cluster.outlook(pod("b", volumes=[home_of("b")])) == MayScaleUp(Source.CONFIGURATION)
    assert cluster.outlook(pod("c", volumes=[home_of("c")])) == CannotScaleUp((FULL,))


@pytest.mark.parametrize("named", [{"storageClassName": "wait"}, {}])
def test_what_one_new_user_learned_holds_for_the_next_new_user(named: dict[str, str]) -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    wait = {**WAIT, "metadata": {"name": "wait", "annotations": default}}
    cluster = Cluster(state(storageClasses=(wait,)), autoscaling="always")

    def claim(user: str, **spec: str) -> Plain:
        return {"metadata": {"name": user, "namespace": "jhub"}, "spec": spec}

    def asks(user: str, **spec: str) -> Subject:
        return Subject(pod(user, volumes=[home_of(user)]), (claim(user, **spec),))

    cluster.state.put(convert("PersistentVolumeClaim", claim("a", storageClassName="wait")))
    cluster.to_come.remember(asks("a"), Source.CLUSTER_AUTOSCALER, FULL)

    assert cluster.to_come.outlook(("jhub", "b"), asks("b", **named), None) == CannotScaleUp(
        (FULL,)
    )


def test_what_was_learned_ends_with_a_new_node() -> None:
    cluster = Cluster(state(), autoscaling="always")
    cluster.to_come.remember(Subject(pod()), None, Obstacle(WhyNoNode.NO_ANSWER))
    assert why(cluster.outlook(pod())) == [WhyNoNode.NO_ANSWER]

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
    cluster.to_come.remember(Subject(pod()), Source.KARPENTER, Obstacle(WhyNoNode.REFUSED))
    assert WhyNoNode.REFUSED in why(cluster.outlook(pod()))

    objects.put(pool("True"))

    assert cluster.outlook(pod()) == MayScaleUp(Source.KARPENTER)


def test_a_no_about_one_pod_leaves_nodes_on_their_way_to_those_they_are_for() -> None:
    cluster = growing(2, target=2)
    cluster.to_come.remember(Subject(pod("b")), Source.CLUSTER_AUTOSCALER, FULL)

    assert isinstance(cluster.outlook(pod("a")), CanScaleUp)


def test_what_a_pool_says_itself_stays_after_an_answer_about_all_pools() -> None:
    backs_off = group("gpu", 0, 1) + "  scaleUp: {status: Backoff}\n"
    objects = autoscalers(status=status(backs_off, group("other", 1, 1)))
    cluster = Cluster(state(), objects, "detect")
    cluster.to_come.remember(Subject(pod("a")), Source.CLUSTER_AUTOSCALER, FULL)

    assert WhyNoNode.STOCK_OUT in why(cluster.outlook(pod("b")))


# A no doesn't take a node away that has joined, but isn't complete yet

EKS = {"eks.amazonaws.com/nodegroup": "gpu"}
SIGN = {**EKS, "nvidia.com/gpu.present": "true"}
PRODUCT = {"nvidia.com/gpu.product": "Tesla-T4"}
ON_ITS_WAY = MayScaleUp(Source.NODES, on_its_way=True)


def young(gpus: int = 0, labels: Plain = SIGN, minutes: float = 1, **more: Any) -> Plain:
    created = datetime.now(UTC) - timedelta(minutes=minutes)
    return node("young", gpus, labels=labels, created=created.isoformat(), **more)


def refused(
    *nodes: Plain, status: str | None = None, asked: Pod | None = None, **kinds: Any
) -> Any:
    """Return the outlook of a pod after Cluster Autoscaler has said no about one like it."""
    known = state(*nodes, **kinds)
    cluster = Cluster(known, autoscalers(status=status), "detect")
    asked = asked or asks()
    cluster.to_come.remember(Subject(asked), Source.CLUSTER_AUTOSCALER, FULL)
    return cluster.outlook(asked)


@pytest.mark.parametrize("shown", [None, status(group("eks-gpu-1", 1, 1))], ids=["none", "full"])
@pytest.mark.parametrize(
    ("joined", "asked"),
    [
        (young(), asks()),
        (young(labels={**EKS, "zone": "a"}), asks(selector={"zone": "a"})),
        (young(), asks(selector=PRODUCT)),
        (young(1), asks(selector={**EKS, **PRODUCT})),
        (young(taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]), asks()),
    ],
    ids=["its GPUs", "GPUs that are selected", "both", "their labels", "all"],
)
def test_a_node_that_lacks_so_far_is_waited_for_after_a_no_too(joined, asked, shown) -> None:
    assert refused(joined, status=shown, asked=asked) == ON_ITS_WAY


@pytest.mark.parametrize(
    ("joined", "asked"),
    [
        (young(1), asks(2)),
        (young(minutes=15.1), asks()),
        (young(unschedulable=True), asks()),
        (young(labels=EKS), asks()),
        (young(memory="4Gi"), asks()),
        (young(taints=[{"key": "team", "effect": "NoSchedule"}]), asks()),
        (young(labels={**SIGN, "zone": "b"}), asks(selector={"zone": "a"})),
        (young(1, labels={**SIGN, "nvidia.com/gpu.product": "A10"}), asks(selector=PRODUCT)),
    ],
    ids=[
        "has all its GPUs", "isn't young", "is cordoned", "shows no sign of GPUs", "has no room",
        "has another taint", "is elsewhere", "is of another model",
    ],
)  # fmt: skip
def test_after_a_no_nobody_waits_for_a_node_that(joined, asked) -> None:
    assert why(refused(joined, asked=asked)) == [WhyNoNode.AT_MAXIMUM]


def test_after_a_no_nobody_waits_for_a_young_node_that_others_fill() -> None:
    theirs = plain_pod("theirs", 0, "30Gi", nodeName="young")

    assert why(refused(young(), pods=(theirs,))) == [WhyNoNode.AT_MAXIMUM]


def test_after_a_no_a_young_node_is_taken_to_be_like_the_others_of_its_type() -> None:
    """Feature discovery hasn't labelled it yet."""
    kind = {"node.kubernetes.io/instance-type": "g5.xlarge"}
    other, many = {**kind, "nvidia.com/gpu.product": "A10G"}, asks(8)
    finished = node("old", 1, labels=other, unschedulable=True)
    joined = young(labels=kind)

    assert refused(joined, asked=asks(selector=PRODUCT)) == ON_ITS_WAY
    assert refused(joined, finished, asked=asks()) == ON_ITS_WAY
    for asked in (asks(selector=PRODUCT), many):
        assert why(refused(joined, finished, asked=asked)) == [WhyNoNode.AT_MAXIMUM]

    broken = node("old", 0, labels=other, unschedulable=True)
    assert refused(joined, broken, asked=many) == ON_ITS_WAY
    assert refused(young(1, labels=kind), broken, asked=asks(selector=PRODUCT)) == ON_ITS_WAY


def test_after_a_no_a_young_node_of_a_type_without_gpus_is_not_waited_for() -> None:
    labels = {"purpose": "user", "node.kubernetes.io/instance-type": "m5.xlarge"}
    asked = asks(selector={"purpose": "user"})

    assert refused(young(labels=labels), asked=asked) == ON_ITS_WAY
    found = refused(node("old", 0, labels=labels), young(labels=labels), asked=asked)
    assert why(found) == [WhyNoNode.AT_MAXIMUM]


def test_of_many_finished_nodes_of_a_type_one_tells_what_a_young_one_will_have(monkeypatch) -> None:
    labels = {**SIGN, "node.kubernetes.io/instance-type": "g5.xlarge"}
    many = [node(f"old-{it}", 1, labels=labels, unschedulable=True) for it in range(20)]
    likened: list[object] = []
    monkeypatch.setattr(new_nodes, "like", lambda it: likened.append(it) or like(it))

    assert refused(young(labels=labels), *many) == ON_ITS_WAY
    assert len(likened) == 1


def test_without_a_no_a_young_node_is_no_sign_that_a_cluster_grows() -> None:
    found = Cluster(state(young(labels=EKS)), autoscalers(), "none").outlook(asks())

    assert found == CannotScaleUp()


def test_a_type_that_names_no_machine_tells_nothing_about_a_young_node() -> None:
    k3s = {"node.kubernetes.io/instance-type": "k3s"}
    finished = node("old", 1, labels=k3s, unschedulable=True)

    assert refused(young(labels={**SIGN, **k3s}), finished, asked=asks(8)) == ON_ITS_WAY


def test_karpenters_no_takes_no_node_away_that_somebody_else_has_added() -> None:
    taints = [{"key": "other", "effect": "NoSchedule"}]
    pool = {"metadata": {"name": "cpu"}, "spec": {"template": {"spec": {"taints": taints}}}}
    cluster = Cluster(state(young()), autoscalers((pool,)), "detect")
    cluster.to_come.remember(Subject(asks()), Source.KARPENTER, Obstacle(WhyNoNode.REFUSED))

    assert cluster.outlook(asks()) == ON_ITS_WAY

"""What an autoscaler answered to one pod holds for those with the same needs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpuspawner.kube.autoscaling import NodePool
from gpuspawner.kube.objects import convert
from gpuspawner.preflight.verdicts import Subject
from gpuspawner.scaling.outlook import CannotScaleUp, CanScaleUp, MayScaleUp, Obstacle, Source, Why
from tests.unit.preflight.nodes import group
from tests.unit.scaling.groups import status, why
from tests.unit.scaling.outlooks import (
    T4,
    Cluster,
    Plain,
    autoscalers,
    node,
    pod,
    state,
)


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
    assert why(cluster.outlook(pod())) == [Why.NO_ANSWER]

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
    assert Why.REFUSED in why(cluster.outlook(pod()))

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

    assert Why.STOCK_OUT in why(cluster.outlook(pod("b")))

"""A status of Cluster Autoscaler that can't be read, or is old, promises and refuses nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from gpuspawner.kube.autoscaling import ConfigMap
from gpuspawner.kube.objects import Undecodable
from gpuspawner.scaling.objects import STATUS, AutoscalerObjects
from gpuspawner.scaling.outlook import CannotScaleUp, CanScaleUp, MayScaleUp, Source, Why
from tests.unit.scaling.groups import (
    EKS,
    asks,
    group,
    member,
    status,
    why,
)
from tests.unit.scaling.outlooks import (
    Cluster,
    autoscalers,
    node,
    outlook,
    state,
)


def test_a_status_that_cannot_be_read_is_not_a_status_that_is_absent() -> None:
    karpenters = {"metadata": {"name": "k"}, "spec": {"replicas": 1}}
    cloud = node("n", 1, labels={EKS: "gpu"}, unschedulable=True)

    def found(objects: AutoscalerObjects) -> object:
        return outlook(state(cloud), asks(), objects=objects, autoscaling="detect")

    unreadable = autoscalers((karpenters,))
    unreadable.put(Undecodable("ConfigMap", *STATUS, "", "its data is a number"))
    empty = autoscalers((karpenters,))
    meta = {"metadata": {"namespace": STATUS[0], "name": STATUS[1]}}
    empty.put(msgspec.convert(meta, ConfigMap))
    forbidden = autoscalers((karpenters,))
    forbidden.mark_unknown("ConfigMap")

    assert why(found(autoscalers((karpenters,)))) == [Why.AT_MAXIMUM]
    for objects in (unreadable, empty, forbidden, autoscalers((karpenters,), status="nonsense")):
        assert found(objects) == MayScaleUp(Source.NODES)


@pytest.mark.parametrize("text", ["nonsense", "x" * 400_001, ""])
def test_groups_whose_status_cant_be_read_may_grow_on_machines_without_a_cloud(text: str) -> None:
    busy = node("worker", 1, labels={}, unschedulable=True)
    objects = autoscalers(status=text)

    found = outlook(state(busy), asks(), objects=objects, autoscaling="detect")

    assert found == MayScaleUp(Source.UNREAD_STATUS)


def test_groups_that_the_hub_has_seen_may_grow_while_it_cant_read_them() -> None:
    objects = autoscalers(status=status(group("gpu", 0, 1)))
    cluster = Cluster(state(), objects, "detect")
    objects.mark_unknown("ConfigMap")
    objects.remove("ConfigMap", *STATUS)

    assert cluster.outlook(asks()) == MayScaleUp(Source.UNREAD_STATUS)

    objects.mark_known("ConfigMap")  # it was deleted

    assert cluster.outlook(asks()) == CannotScaleUp()


def test_an_old_status_promises_nothing() -> None:
    def found(minutes: int) -> object:
        at = datetime.now(UTC) - timedelta(minutes=minutes)
        text = f"time: {at:%Y-%m-%d %H:%M:%S}.5 +0000 UTC\n{status(group())}"
        return outlook(
            state(member()), asks(), objects=autoscalers(status=text), autoscaling="detect"
        )

    assert isinstance(found(14), CanScaleUp)
    assert found(16) == MayScaleUp(Source.NODES)


def test_a_status_becomes_old_without_a_change() -> None:
    at = datetime.now(UTC) - timedelta(minutes=14)
    objects = autoscalers(status=f"time: {at:%Y-%m-%d %H:%M:%S} +0000 UTC\n{status(group())}")
    cluster = Cluster(state(), objects, "detect")
    before = cluster.to_come.version
    cluster.pools._autoscaler._written = at - timedelta(minutes=2)

    assert cluster.to_come.version != before

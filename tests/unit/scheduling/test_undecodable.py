"""Undecodable objects, by kind and by node."""

from __future__ import annotations

import pytest

from gpuspawner.kube.objects import Undecodable
from gpuspawner.scheduling.undecodable import UndecodableObjects

pytestmark = pytest.mark.each_python

POD = Undecodable("Pod", "hub", "a", "n1", "no containers")


def test_a_pod_is_found_on_its_last_node_only() -> None:
    objects = UndecodableObjects()

    objects.put(POD)
    objects.put(Undecodable("Pod", "hub", "a", "n2", "no containers"))

    assert list(objects.pods_on("n1")) == []
    assert [it.node for it in objects.pods_on("n2")] == ["n2"]
    assert list(objects.keys("Pod")) == ["hub/a"]
    assert list(objects.keys("Node")) == []


def test_a_discarded_object_is_gone() -> None:
    objects = UndecodableObjects()
    objects.put(POD)

    assert objects.discard("Pod", "hub/a")
    assert not objects.discard("Pod", "hub/a")
    assert not objects
    assert list(objects.pods_on("n1")) == []

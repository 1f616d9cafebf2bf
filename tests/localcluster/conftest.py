"""Fixtures of the local cluster's own tests."""

from __future__ import annotations

import pytest

from localcluster import Fleet, LocalCluster
from localcluster.fleet import NodeGroup
from tests.fixtures.cluster import AddNodes
from tests.localcluster.faults import ROOM, Told


@pytest.fixture
def told(cluster: LocalCluster, namespace: str, add_nodes: AddNodes) -> Told:
    """The namespace of a test whose cluster has the node gpu-0, with two GPUs."""
    add_nodes(Fleet((NodeGroup("gpu", 1, ROOM),)))
    return Told(cluster, namespace)

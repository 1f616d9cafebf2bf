"""Clusters that the modules of this folder share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from localcluster import LocalCluster, Pods
from tests.cluster.admitting import Asker, asking

# Plugins that a cloud may enable in addition to Kubernetes' defaults; GKE enables the first.
_PLUGINS = "ExtendedResourceToleration,PodNodeSelector"


@pytest.fixture(scope="session")
def admitting_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster with more admission plugins, for tests whose rules would disturb others."""
    directory = tmp_path_factory.mktemp("admitting-cluster")
    flags = {"kube-apiserver": [f"--enable-admission-plugins={_PLUGINS}"]}
    with LocalCluster(directory, pods=Pods.REPORT, flags=flags) as running:
        yield running


@pytest.fixture
async def asker(cluster: LocalCluster, namespace: str) -> AsyncIterator[Asker]:
    """An asker in the test's namespace."""
    async with asking(cluster, namespace) as asker:
        yield asker

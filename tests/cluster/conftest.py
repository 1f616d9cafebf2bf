"""Clusters that the modules of this folder share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from localcluster import LocalCluster, Pods
from tests.cluster.admitting import Asker, asking
from tests.cluster.webhooks import Webhooks

# What a cloud may switch on beside Kubernetes' own choice; GKE has the first.
_PLUGINS = "ExtendedResourceToleration,PodNodeSelector"


@pytest.fixture(scope="session")
def admitting_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster with more admission plugins, whose rules disturb nobody else's tests."""
    directory = tmp_path_factory.mktemp("admitting-cluster")
    flags = {"kube-apiserver": [f"--enable-admission-plugins={_PLUGINS}"]}
    with LocalCluster(directory, pods=Pods.REPORT, flags=flags) as running:
        yield running


@pytest.fixture(scope="session")
def webhooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhooks]:
    """A server of webhooks; each test sets the answers of its own path."""
    server = Webhooks(tmp_path_factory.mktemp("webhooks"))
    yield server
    server.stop()


@pytest.fixture
async def asker(cluster: LocalCluster, namespace: str) -> AsyncIterator[Asker]:
    """Somebody who asks in the test's namespace."""
    async with asking(cluster, namespace) as asker:
        yield asker

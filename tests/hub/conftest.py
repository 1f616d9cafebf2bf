"""Hubs for the tests of this folder; which JupyterHub they run is the environment's."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import pytest

from localcluster import LocalCluster
from tests.hub.running import RunningHub, running_hub

StartHub = Callable[[str], AbstractContextManager[RunningHub]]

# A small server: what a pod runs where a test is not about JupyterLab.
SPAWNING = """
import gpuspawner
c.KubeSpawner.namespace = {namespace!r}
c.KubeSpawner.cmd = [{python!r}, "-m", "jupyterhub.tests.mocksu"]
c.KubeSpawner.delete_grace_period = 0
c.KubeSpawner.start_timeout = 60
c.Spawner.consecutive_failure_limit = 5
{more}
gpuspawner.configure(c)
"""


class StartGPUHub(Protocol):
    def __call__(
        self, configuration: str = "", *, kubeconfig: Path | None = None
    ) -> AbstractContextManager[RunningHub]:
        """Run a hub with GPUSpawner on the test's cluster and in its namespace."""


@pytest.fixture(scope="session")
def start_hub(tmp_path_factory: pytest.TempPathFactory) -> StartHub:
    """Start a hub with the given lines of configuration, in a folder of its own."""

    def start(configuration: str) -> AbstractContextManager[RunningHub]:
        return running_hub(tmp_path_factory.mktemp("hub"), configuration)

    return start


@pytest.fixture
def cluster(running_cluster: LocalCluster) -> LocalCluster:
    """Servers are real here: the hub does not believe in one that does not answer."""
    running_cluster.check()
    return running_cluster


@pytest.fixture
def start_gpu_hub(tmp_path: Path, hub_kubeconfig: Path, namespace: str) -> StartGPUHub:
    """Start a hub with GPUSpawner that has the chart's rights and rbac.yaml, and no more."""

    def start(
        configuration: str = "", *, kubeconfig: Path | None = None
    ) -> AbstractContextManager[RunningHub]:
        return running_hub(
            tmp_path,
            SPAWNING.format(namespace=namespace, python=sys.executable, more=configuration),
            environment={"KUBECONFIG": str(kubeconfig or hub_kubeconfig)},
        )

    return start

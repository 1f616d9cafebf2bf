"""Hubs for the tests of this folder; which JupyterHub they run is the environment's."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from localcluster import LocalCluster, rbac
from tests.cluster.webhooks import Webhooks
from tests.hub import answers
from tests.hub.pods import Pods
from tests.hub.running import RunningHub, running_hub
from tests.waiting import wait_for

StartHub = Callable[[str], AbstractContextManager[RunningHub]]

# A small server: what a pod runs where a test is not about JupyterLab.
SPAWNING = """
import gpuspawner
c.KubeSpawner.namespace = {namespace!r}
c.KubeSpawner.cmd = {server!r}
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
        """Run a hub with GPUSpawner, in a namespace of its own of `running_cluster`.

        It has the rights of the chart's role and of rbac.yaml and no more, or *kubeconfig*'s.
        """


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


@pytest.fixture(scope="session")
def start_gpu_hub(
    running_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> StartGPUHub:
    @contextmanager
    def start(configuration: str = "", *, kubeconfig: Path | None = None) -> Iterator[RunningHub]:
        namespace = f"hub-{secrets.token_hex(4)}"
        running_cluster.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        own = kubeconfig or rbac.hub_kubeconfig(running_cluster, namespace)
        lines = SPAWNING.format(namespace=namespace, server=answers.COMMAND, more=configuration)
        folder, environment = tmp_path_factory.mktemp("hub"), {"KUBECONFIG": str(own)}
        pods = Pods(running_cluster, namespace)
        with running_hub(folder, lines, environment=environment, pods=pods) as hub:
            # Another kubeconfig may have been chosen because it shows no cluster, and without
            # `configure` the first spawner begins to read it.
            if kubeconfig is None and "gpuspawner.configure =" not in configuration:
                hub.until_it_sees_the_cluster()
            yield hub
        running_cluster.api.delete(pods.path, grace=0)
        running_cluster.api.delete(f"/api/v1/namespaces/{namespace}")

    return start


@pytest.fixture(scope="session")
def webhooks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhooks]:
    """A server of webhooks; each test sets the answers of its own path."""
    server = Webhooks(tmp_path_factory.mktemp("webhooks"))
    yield server
    server.stop()


@pytest.fixture
def leave_no_server(hub: RunningHub) -> Iterator[None]:
    """For a hub that several tests of a module share."""
    yield
    for user in hub.api("GET", "/users").json():
        if user["servers"]:
            hub.stop(user["name"])
    wait_for(lambda: not hub.pods.all())

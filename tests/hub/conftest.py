"""Hubs for the tests of this folder; the environment decides the version of JupyterHub."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from localcluster import LocalCluster, rbac
from tests.fixtures.cluster import AddNodes
from tests.hub.kept import Keeper, LendHub
from tests.hub.pods import Pods
from tests.hub.running import RunningHub, running_hub
from tests.servers import single_user

StartHub = Callable[[str], AbstractContextManager[RunningHub]]

# Pods run a small server, not JupyterLab.
SPAWNING = """
import gpuspawner
c.KubeSpawner.namespace = {namespace!r}
c.KubeSpawner.cmd = {server!r}
c.KubeSpawner.delete_grace_period = 0
c.KubeSpawner.start_timeout = 60
c.Spawner.consecutive_failure_limit = 5
# A busy machine may need more than 10 s; a refusal must still be in the answer.
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 60}}
{more}
gpuspawner.configure(c)
"""


class StartGPUHub(Protocol):
    def __call__(
        self, configuration: str = "", *, kubeconfig: Path | None = None
    ) -> AbstractContextManager[RunningHub]:
        """Run a hub with GPUSpawner, in its own namespace of `running_cluster`.

        It only has the rights of the chart's role and rbac.yaml, or those of *kubeconfig*.
        """


@pytest.fixture(scope="session")
def start_hub(tmp_path_factory: pytest.TempPathFactory) -> StartHub:
    """Start a hub with the given configuration, in a folder of its own."""

    def start(configuration: str) -> AbstractContextManager[RunningHub]:
        return running_hub(tmp_path_factory.mktemp("hub"), configuration)

    return start


@pytest.fixture
def cluster(running_cluster: LocalCluster) -> LocalCluster:
    """The cluster that runs real servers: the hub waits until a server answers."""
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
        lines = SPAWNING.format(namespace=namespace, server=single_user.COMMAND, more=configuration)
        folder, environment = tmp_path_factory.mktemp("hub"), {"KUBECONFIG": str(own)}
        pods = Pods(running_cluster, namespace)
        try:
            with running_hub(folder, lines, environment=environment, pods=pods) as hub:
                # Another kubeconfig may have been chosen because it shows no cluster, and without
                # `configure` the first spawner begins to read it.
                if kubeconfig is None and "gpuspawner.configure =" not in configuration:
                    hub.until_it_sees_the_cluster()
                yield hub
        finally:
            running_cluster.api.delete(pods.path, grace=0)
            running_cluster.api.delete(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims")

    return start


@pytest.fixture(scope="session")
def keeper(start_gpu_hub: StartGPUHub, running_cluster: LocalCluster) -> Iterator[Keeper]:
    made = Keeper(start_gpu_hub, running_cluster)
    yield made
    made.end()


@pytest.fixture
def kept_hub(keeper: Keeper, add_nodes: AddNodes) -> Iterator[LendHub]:  # noqa: ARG001
    """Lend a hub with a configuration, which other tests have had before and will have later.

    Add the nodes first; they go after the servers.
    """
    with keeper.lending() as lend:
        yield lend


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of a module that share hubs run on one worker, unless a mark groups them."""
    for item in items:
        shares = "kept_hub" in getattr(item, "fixturenames", ())
        if shares and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))

"""The live view against a real API server."""

from __future__ import annotations

import logging
import random
import time
from pathlib import Path

import pytest

from gpuspawner.cluster.health import Forbidden, Live, Stale, Unreachable
from gpuspawner.cluster.retries import Backoff
from localcluster import Fleet, LocalCluster, NodeGroup
from localcluster import kubeconfig as kubeconfigs
from tests.cluster.views import aside, until, until_current, viewing
from tests.fixtures.cluster import AddNodes
from tests.waiting import PATIENCE, wait_for

ROOM = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}


def pod(name: str, gpus: int = 1) -> dict[str, object]:
    limits = {"nvidia.com/gpu": str(gpus), "cpu": "100m"}
    return {
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "notebook", "image": "x", "resources": {"limits": limits}}],
        },
    }


def churn(cluster: LocalCluster, namespace: str, nodes: list[str], seed: int, steps: int) -> None:
    """Create and delete pods and change nodes at random; create more pods than fit."""
    dice = random.Random(seed)
    path = f"/api/v1/namespaces/{namespace}/pods"
    there: list[str] = []
    for step in range(steps):
        if there and dice.random() < 0.45:
            name = there.pop(dice.randrange(len(there)))
            cluster.api.delete(f"{path}/{name}", grace=dice.choice([0, 1]))
        elif dice.random() < 0.15:
            spec = {"unschedulable": dice.choice([True, None])}
            labels = {"step": str(step)}
            node = dice.choice(nodes)
            cluster.api.patch(
                f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}, "spec": spec}
            )
        else:
            there.append(f"p{seed}-{step}")
            cluster.api.create(path, pod(there[-1], dice.randint(0, 4)))


async def test_after_random_changes_the_view_equals_a_fresh_list(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    seed = random.randrange(2**32)
    logging.getLogger(__name__).warning("seed %d", seed)
    nodes = add_nodes(Fleet((NodeGroup("churn", 3, ROOM),)))
    async with viewing(cluster.kubeconfig) as view:
        assert await view.first_list(PATIENCE)
        await aside(lambda: churn(cluster, namespace, nodes, seed, 150))

        await until_current(view, cluster)
        assert isinstance(view.health(), Live)


async def test_a_watch_that_expires_repeatedly_loses_nothing(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    nodes = add_nodes(Fleet((NodeGroup("expiry", 2, ROOM),)))
    async with viewing(cluster.kubeconfig, Backoff(watch=1.0)) as view:
        assert await view.first_list(PATIENCE)
        await aside(lambda: churn(cluster, namespace, nodes, seed=7, steps=150))

        await until_current(view, cluster)


async def test_changes_during_an_outage_of_the_api_server_are_seen_afterwards(
    cluster: LocalCluster,
    namespace: str,
    add_nodes: AddNodes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = add_nodes(Fleet((NodeGroup("restart", 2, ROOM),)))
    async with viewing(cluster.kubeconfig) as view:
        assert await view.first_list(PATIENCE)
        await aside(lambda: churn(cluster, namespace, nodes, seed=8, steps=60))
        monkeypatch.setattr("gpuspawner.cluster.health.STALE_AFTER", 0.5)
        await aside(cluster.plane.stop_apiserver)
        await until(view, lambda: isinstance(view.health(), Stale))
        await aside(cluster.plane.start_apiserver)
        await aside(lambda: churn(cluster, namespace, nodes, seed=9, steps=60))

        await until_current(view, cluster)
        await until(view, lambda: isinstance(view.health(), Live))


@pytest.mark.nightly("it asks the clock")
async def test_a_freed_gpu_is_seen_within_a_second(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    [node] = add_nodes(Fleet((NodeGroup("freed", 1, ROOM),)))
    path = f"/api/v1/namespaces/{namespace}/pods"

    def free() -> int:
        return view.state.nodes[node].free["nvidia.com/gpu"]

    def delete_and_wait(name: str) -> float:
        cluster.api.delete(f"{path}/{name}", grace=0)
        wait_for(lambda: not cluster.api.items(path))
        return time.monotonic()

    async def delay(name: str) -> float:
        await aside(lambda: cluster.api.create(path, pod(name, gpus=8)))
        await until(view, lambda: free() == 0)
        gone = await aside(lambda: delete_and_wait(name))
        await until(view, lambda: free() == 8)
        return time.monotonic() - gone

    async with viewing(cluster.kubeconfig) as view:
        assert await view.first_list(PATIENCE)
        delays = [await delay(name) for name in "abc"]

    # A busy machine may delay one of them; a slow view would be late each time.
    assert min(delays) < 1


async def test_the_charts_role_and_rbac_yaml_are_enough(
    hub_kubeconfig: Path, add_nodes: AddNodes
) -> None:
    add_nodes(Fleet((NodeGroup("role", 1, ROOM),)))
    async with viewing(hub_kubeconfig) as view:
        assert await view.first_list(PATIENCE)

        assert "role-0" in view.state.nodes


async def test_without_rights_the_view_is_forbidden_until_they_are_granted(
    cluster: LocalCluster, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    account = f"system:serviceaccount:{namespace}:viewer"
    grant_path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    binding = {
        "metadata": {"name": namespace},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": namespace}],
    }
    path = await aside(lambda: cluster.service_account_kubeconfig(namespace, "viewer"))
    async with viewing(path) as view:
        assert not await view.first_list(PATIENCE)
        await until(view, lambda: view.health() and len(getattr(view.health(), "kinds", ())) == 2)
        health = view.health()
        assert isinstance(health, Forbidden)
        assert health.kinds == ("nodes", "pods")
        assert account in health.text

        await aside(lambda: cluster.api.create(grant_path, binding))
        try:
            await until(view, lambda: isinstance(view.health(), Live))
        finally:
            await aside(lambda: cluster.api.delete(f"{grant_path}/{namespace}"))

    said = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    forbidden = "isn't allowed to list and watch nodes and pods"
    assert len([line for line in said if forbidden in line]) == 1


async def test_rejected_credentials_are_read_again_until_they_are_accepted(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    kubeconfigs.write(path, url=cluster.url, ca=cluster.ca, token="expired")
    async with viewing(path) as view:
        assert not await view.first_list(PATIENCE)
        health = view.health()
        assert isinstance(health, Unreachable)
        assert "401" in health.text

        kubeconfigs.write(path, url=cluster.url, ca=cluster.ca, token=cluster.token)
        await until(view, lambda: isinstance(view.health(), Live))

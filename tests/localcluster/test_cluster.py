"""The Python interface of a cluster: clients, nodes, outages."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from localcluster import (
    ApiError,
    Fleet,
    LocalCluster,
    LocalClusterError,
    NodeGroup,
    Pods,
    controlplane,
)
from localcluster.client import Client, Object
from localcluster.nodes import SILENT
from localcluster.ports import free_ports
from tests.fixtures.cluster import AddNodes
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

TWO = Fleet((NodeGroup("two", 2, {"cpu": "8", "memory": "32Gi", "pods": "110"}),))
PLAIN = {"spec": {"containers": [{"name": "notebook", "image": "example.org/notebook"}]}}


def pod(name: str) -> Object:
    return {"metadata": {"name": name}, **PLAIN}


def is_running(cluster: LocalCluster, path: str) -> bool:
    return bool(cluster.api.get(path)["status"]["phase"] == "Running")


def test_the_hubs_client_is_exactly_its_service_account(
    cluster: LocalCluster, namespace: str, hub_kubeconfig: Path
) -> None:
    def as_hub(*arguments: str) -> str:
        return cluster.kubectl("--kubeconfig", str(hub_kubeconfig), *arguments)

    who = as_hub("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
    assert who == f"system:serviceaccount:{namespace}:hub"

    assert as_hub("get", "pods") == ""
    assert as_hub("get", "nodes") == ""
    for forbidden in ("configmaps", "leases"):
        with pytest.raises(LocalClusterError, match="forbidden"):
            as_hub("get", forbidden)


def test_nodes_come_and_go_with_their_pods(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    pods = f"/api/v1/namespaces/{namespace}/pods"
    names = add_nodes(TWO)
    assert names == ["two-0", "two-1"]
    cluster.api.create(pods, pod("p"))
    wait_for(lambda: is_running(cluster, f"{pods}/p"))

    cluster.remove_nodes(names)

    left = {node["metadata"]["name"] for node in cluster.api.items("/api/v1/nodes")}
    assert not left & set(names)
    assert cluster.api.items(pods) == []


def test_a_pod_ends_on_time_after_an_outage_of_the_api_server(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes(TWO)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.api.create(pods, pod("before"))
    wait_for(lambda: is_running(cluster, f"{pods}/before"))

    cluster.plane.stop_apiserver()
    with pytest.raises(OSError, match="refused"):
        cluster.api.items(pods)
    cluster.plane.start_apiserver()

    cluster.api.create(pods, pod("after"))
    wait_for(lambda: is_running(cluster, f"{pods}/after"))
    cluster.api.delete(f"{pods}/before")
    wait_for(lambda: len(cluster.api.items(pods)) == 1)


def test_a_silent_node_neither_starts_nor_ends_pods(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    [node] = add_nodes("single")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.api.create(pods, pod("p"))
    wait_for(lambda: is_running(cluster, f"{pods}/p"))
    silence = {"metadata": {"annotations": {SILENT: "true"}}}
    cluster.api.patch(f"/api/v1/nodes/{node}", silence)

    cluster.api.delete(f"{pods}/p", grace=1)
    cluster.api.create(pods, pod("q"))

    def is_bound() -> bool:
        return "nodeName" in cluster.api.get(f"{pods}/q")["spec"]

    wait_for(is_bound)
    assert "deletionTimestamp" in cluster.api.get(f"{pods}/p")["metadata"]
    assert cluster.api.get(f"{pods}/q")["status"]["phase"] == "Pending"

    cluster.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {SILENT: None}}})
    wait_for(lambda: is_running(cluster, f"{pods}/q"))
    wait_for(lambda: len(cluster.api.items(pods)) == 1)


def test_without_agent_and_controllers_pods_stay_as_the_scheduler_left_them(
    tmp_path: Path,
) -> None:
    flags = {"kube-apiserver": ["--event-ttl=5m"]}
    with LocalCluster(tmp_path, fleet=TWO, pods=Pods.LEAVE, controllers=(), flags=flags) as cluster:
        pods = "/api/v1/namespaces/default/pods"
        cluster.api.create(pods, pod("p"))
        bound = wait_for(
            lambda: next((p for p in cluster.api.items(pods) if "nodeName" in p["spec"]), None)
        )

        assert bound["status"]["phase"] == "Pending"
        assert len(cluster.plane.processes()) == 3
    with pytest.raises(LocalClusterError, match="the cluster does not run"):
        _ = cluster.url


@pytest.mark.parametrize("server", [0, 1], ids=["kube-apiserver", "etcd"])
def test_a_port_that_another_process_takes_is_replaced(
    server: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        first = free_ports(3)
        first[server] = other.getsockname()[1]
        drawn = iter([first, free_ports(3)])
        monkeypatch.setattr(controlplane, "free_ports", lambda _count: next(drawn))

        with LocalCluster(tmp_path, pods=Pods.LEAVE, controllers=()) as cluster:
            assert cluster.api.items("/api/v1/nodes") == []
        assert next(drawn, None) is None


def test_a_wrong_token_is_refused(cluster: LocalCluster) -> None:
    unknown = Client(cluster.url, cluster.ca, "none")

    with pytest.raises(ApiError) as raised:
        unknown.get("/api/v1/nodes")

    assert raised.value.status == 401


def test_a_quota_is_enforced(cluster: LocalCluster, namespace: str) -> None:
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    cluster.api.create(quotas, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}})
    wait_for(lambda: cluster.api.get(f"{quotas}/q").get("status", {}).get("hard"))

    with pytest.raises(ApiError, match="exceeded quota: q"):
        cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", pod("p"))

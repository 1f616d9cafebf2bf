"""The real Kueue beside a real control plane."""

from __future__ import annotations

import pytest

from localcluster import Fleet, LocalCluster
from localcluster.client import Object
from localcluster.fleet import NodeGroup
from localcluster.kueue.objects import (
    API,
    QUEUE_LABEL,
    cluster_queue,
    local_queue,
    resource_flavor,
)
from localcluster.kueue.running import RunningKueue
from tests.fixtures.cluster import AddNodes
from tests.localcluster.faults import ROOM
from tests.localcluster.seen import gpu_pod, phase
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

ONE_GPU = {"t4": {"nvidia.com/gpu": {"nominalQuota": "1"}}}


def queued(name: str) -> Object:
    pod = gpu_pod(name)
    pod["metadata"]["labels"] = {QUEUE_LABEL: "gpus"}
    return pod


def test_a_pod_waits_until_its_queue_has_quota_for_it(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes, kueue: RunningKueue
) -> None:
    add_nodes(Fleet((NodeGroup("gpu", 1, ROOM),)))
    api, pods = cluster.api, f"/api/v1/namespaces/{namespace}/pods"
    api.create(f"{API}/resourceflavors", resource_flavor("t4"))
    api.create(f"{API}/clusterqueues", cluster_queue("team", ONE_GPU))
    queues = f"{API}/namespaces/{namespace}/localqueues"
    api.create(queues, local_queue("gpus", namespace, "team"))

    api.create(pods, queued("first"))
    wait_for(lambda: phase(cluster, namespace, "first") == "Running")
    second = api.create(pods, queued("second"))

    assert "kueue.x-k8s.io/admission" in [it["name"] for it in second["spec"]["schedulingGates"]]
    wait_for(lambda: api.get(f"{queues}/gpus")["status"].get("pendingWorkloads") == 1)
    api.delete(f"{pods}/first", grace=0)
    wait_for(lambda: phase(cluster, namespace, "second") == "Running")
    kueue.process.check()

"""Undecodable objects stop neither the hub nor verdicts that don't depend on them."""

from __future__ import annotations

from pathlib import Path

from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.undecodable_api import undecodable_api
from tests.waiting import wait_for

T4 = """
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "Tesla T4", "node_selector": {"kubernetes.io/hostname": "gpu-0"}}}
"""


def test_verdicts_hold_despite_undecodable_pods_and_torn_watches(
    cluster: LocalCluster, start_gpu_hub: StartGPUHub, add_nodes: AddNodes, tmp_path: Path
) -> None:
    add_nodes("single")
    with (
        undecodable_api(cluster, tmp_path / "kubeconfig", cluster.token) as kubeconfig,
        start_gpu_hub(T4, kubeconfig=kubeconfig) as hub,
    ):
        wait_for(lambda: "The view of the cluster is live" in hub.log)
        hub.start_until_ready("alice", {"accelerator": "t4"})

        refused = hub.start("bob", {"accelerator": "t4"})
        assert refused.status_code == 409
        assert "in use" in refused.json()["message"]

        hub.stop("alice")
        hub.start_until_ready("bob", {"accelerator": "t4"})
        assert hub.log.count("of the cluster cannot be understood") == 1
        assert "Traceback" not in hub.log
        assert hub.lives
        hub.stop("bob")

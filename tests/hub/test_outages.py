"""If the hub can't read the cluster, it logs that once, goes on, and recovers by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from localcluster import LocalCluster, rbac
from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.running import RunningHub
from tests.waiting import wait_for

T4 = """
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "Tesla T4", "node_selector": {"kubernetes.io/hostname": "gpu-0"}}}
"""


def told(hub: RunningHub) -> list[str]:
    """The log lines of the view."""
    return [line for line in hub.log.splitlines() if "gpuspawner.cluster" in line]


def warnings(hub: RunningHub, about: str) -> list[str]:
    return [line for line in hub.log.splitlines() if line.startswith("[W") and about in line]


@pytest.fixture
def chart_s_rights(cluster: LocalCluster, namespace: str) -> Path:
    """The kubeconfig of a chart's hub without rbac.yaml."""
    objects = rbac.chart_objects(namespace)
    cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))
    return cluster.service_account_kubeconfig(namespace, "hub")


def test_without_rights_servers_start_unchecked_with_one_log_line(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes, chart_s_rights: Path, namespace: str
) -> None:
    add_nodes("single")
    lines = f"{T4}c.KubeSpawner.namespace = {namespace!r}\n"
    with start_gpu_hub(lines, kubeconfig=chart_s_rights) as hub:
        page = hub.person("alice").open("/hub/spawn")
        assert page.status == 200
        assert "Tesla T4" in page.text

        hub.start_until_ready("alice")
        (said,) = warnings(hub, "isn't allowed to list and watch")
        assert "nodes and pods" in said
        assert "Traceback" not in hub.log
        hub.stop("alice")


def test_pages_work_without_the_api_server_and_the_view_recovers(
    tmp_path: Path, start_gpu_hub: StartGPUHub
) -> None:
    own = LocalCluster(tmp_path / "own", fleet="single")
    with own, start_gpu_hub(T4, kubeconfig=own.kubeconfig) as hub:
        alice = hub.person("alice")
        wait_for(lambda: "The view of the cluster is live" in hub.log)

        own.plane.stop_apiserver()
        wait_for(lambda: warnings(hub, "The view of the cluster is"), timeout=60)
        assert "Tesla T4" in alice.open("/hub/spawn").text
        assert hub.person("bob").open("/hub/home").status == 200

        own.plane.start_apiserver()
        wait_for(lambda: told(hub)[-1].endswith("The view of the cluster is live."), timeout=60)
        # One line for the loss, and perhaps one for changes missed meanwhile.
        assert len(warnings(hub, "The view of the cluster is")) <= 2


def test_without_a_kubeconfig_the_pages_work_and_say_what_is_wrong(
    tmp_path: Path, start_gpu_hub: StartGPUHub
) -> None:
    with start_gpu_hub(T4, kubeconfig=tmp_path / "none") as hub:
        alice = hub.person("alice")

        assert "Tesla T4" in alice.open("/hub/spawn").text
        page = alice.submit({"accelerator": "t4"})
        assert page.status < 500
        assert len(warnings(hub, "no usable Kubernetes configuration")) == 1
        assert hub.lives

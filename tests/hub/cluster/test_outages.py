"""If the hub can't read the cluster, it logs that once, goes on, and recovers by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from localcluster import LocalCluster, Pods, kubeconfig, rbac
from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.running import RunningHub
from tests.servers.cutting_proxy import CuttingProxy
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


def test_a_hub_that_loses_its_rights_while_it_runs_says_so_once_and_goes_on(
    cluster: LocalCluster,
    start_gpu_hub: StartGPUHub,
    add_nodes: AddNodes,
    namespace: str,
    tmp_path: Path,
) -> None:
    add_nodes("single")
    token = kubeconfig.read(rbac.hub_kubeconfig(cluster, namespace)).token
    binding = f"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/gpuspawner-{namespace}"
    lines = f"{T4}c.KubeSpawner.namespace = {namespace!r}\n"
    proxy = CuttingProxy(cluster)
    with (
        proxy.open(),
        start_gpu_hub(lines, kubeconfig=proxy.kubeconfig(tmp_path / "kubeconfig", token)) as hub,
    ):
        hub.until_it_sees_the_cluster()
        cluster.api.delete(binding)
        proxy.cut()  # a watch goes on without the right until it ends

        wait_for(lambda: warnings(hub, "isn't allowed to list and watch nodes and pods"))
        hub.start_until_ready("alice")
        hub.stop("alice")

        rbac.hub_kubeconfig(cluster, namespace)
        wait_for(lambda: sum("The view of the cluster is live." in it for it in told(hub)) >= 2)
        losses = [line.partition("isn't allowed")[2] for line in warnings(hub, "isn't allowed")]
        assert len(losses) == len({loss.partition(" (")[0] for loss in losses})


def test_pages_work_without_the_api_server_and_the_view_recovers(
    tmp_path: Path, start_gpu_hub: StartGPUHub
) -> None:
    def of_the_view() -> list[str]:
        return [line for line in told(hub) if "The view of the cluster is" in line]

    own = LocalCluster(tmp_path / "own", fleet="single")
    with own, start_gpu_hub(T4, kubeconfig=own.kubeconfig) as hub:
        alice = hub.person("alice")
        wait_for(of_the_view)

        own.plane.stop_apiserver()
        wait_for(lambda: warnings(hub, "The view of the cluster is"), timeout=60)
        assert "Tesla T4" in alice.open("/hub/spawn").text
        assert hub.person("bob").open("/hub/home").status == 200

        own.plane.start_apiserver()
        wait_for(lambda: of_the_view()[-1].endswith("is live."), timeout=60)
        # One line for the loss, and perhaps one for changes missed meanwhile.
        assert len(warnings(hub, "The view of the cluster is")) <= 2


@pytest.mark.nightly(
    why="it lasts two minutes; a unit test of start/connection has the same outage"
)
def test_servers_start_after_an_outage_in_which_kubespawner_stops_watching(
    tmp_path: Path, start_gpu_hub: StartGPUHub
) -> None:
    own = LocalCluster(tmp_path / "own", fleet="single", pods=Pods.RUN)
    lines = f"{T4}c.KubeSpawner.namespace = 'default'\n"
    with own, start_gpu_hub(lines, kubeconfig=own.kubeconfig) as hub:
        hub.start_until_ready("alice")
        hub.stop("alice")

        own.plane.stop_apiserver()
        wait_for(lambda: "Watching resources never recovered" in hub.log, timeout=180)
        own.plane.start_apiserver()
        wait_for(lambda: told(hub)[-1].endswith("is live."), timeout=60)

        hub.start_until_ready("alice")
        hub.stop("alice")


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

"""Other schedulers than the default one place servers, and those whose filters are its own count.

The chart's user-scheduler is one, a provider's profile that admission sets is another.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from localcluster import LocalCluster
from localcluster.processes import Process
from tests.fixtures.cluster import AddNodes
from tests.helm.chart import Chart
from tests.helm.conftest import chart  # noqa: F401 - a fixture
from tests.hub.configurations import T4, t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.hub.running import RunningHub
from tests.servers.webhooks import Webhooks, configured, patched
from tests.waiting import wait_for

NAME = "jhub-user-scheduler"
# As the chart's jupyterhub_config.py does; the module reads files of the chart's pod.
IN_THE_CHART = """
import sys
from tests.fixtures.chart_hub import chart_module
sys.modules["z2jh"] = chart_module({values!r}, {{"user-scheduler": {name!r}}})
c.KubeSpawner.scheduler_name = {name!r}
c.KubeSpawner.start_timeout = 300
"""


@pytest.fixture
def user_scheduler(
    cluster: LocalCluster,
    chart: Chart,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """kube-scheduler with the configuration that the chart's values give it."""
    values = chart.values()["scheduling"]["userScheduler"]
    profile = {
        "schedulerName": NAME,
        "plugins": values["plugins"],
        "pluginConfig": values["pluginConfig"],
    }
    with scheduling(cluster, tmp_path_factory.mktemp("user-scheduler"), profile):
        yield


@contextmanager
def scheduling(cluster: LocalCluster, folder: Path, profile: dict[str, Any]) -> Iterator[None]:
    """Run a kube-scheduler with a profile of its own."""
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig)},
        "profiles": [profile],
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(configuration))
    flags = (f"--config={folder / 'config.yaml'}", "--secure-port=0")
    command = [cluster.plane.binary, "kube-scheduler", *flags]
    process = Process("scheduler", command, folder / "log")
    try:
        yield
    finally:
        process.stop()


def block(hub: RunningHub) -> list[str]:
    """The lines of the block that tells what the hub found."""
    lines = iter(hub.log.splitlines())
    for line in lines:
        if line.endswith("gpuspawner found:"):
            break
    found = []
    for line in lines:
        if not line.startswith("    "):
            break
        found.append(line.strip())
    return found


@pytest.mark.usefixtures("user_scheduler")
def test_its_pods_are_bound_and_refused_like_any_others(
    start_gpu_hub: StartGPUHub,
    add_nodes: AddNodes,
    chart: Chart,  # noqa: F811
) -> None:
    add_nodes(t4_nodes(1, gpus=1))
    lines = IN_THE_CHART.format(values=chart.values(), name=NAME)
    with start_gpu_hub(T4 + lines) as hub:
        wait_for(lambda: block(hub))
        hub.start_until_ready("alice", {"accelerator": "t4"})
        assert hub.pods.bound("alice")["spec"]["schedulerName"] == NAME

        refused = hub.start("bob", {"accelerator": "t4"})
        assert refused.status_code == 409, refused.text
        assert "Tesla T4" in refused.json()["message"]

        assert "unchecked" not in hub.log
        judged = f"{NAME}, kube-scheduler v1.30.14 of the chart; its values change only scores"
        assert block(hub) == [
            "preflight: enforce",
            f"scheduler: {judged}",
            "nodes: 1, 1 with GPUs",
            "t4: 1 node, 1 of 1 GPUs free",
        ]


PACKING = {
    "schedulerName": "gke.io/optimize-utilization-scheduler",
    "pluginConfig": [
        {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    ],
}
SET = {"op": "replace", "path": "/spec/schedulerName", "value": PACKING["schedulerName"]}


def test_a_scheduler_that_admission_sets_and_that_only_scores_differently_is_no_doubt(
    start_gpu_hub: StartGPUHub,
    add_nodes: AddNodes,
    cluster: LocalCluster,
    webhooks: Webhooks,
    tmp_path: Path,
) -> None:
    add_nodes(t4_nodes(1, gpus=1))
    webhooks.answers["packing"] = lambda _: patched(SET)
    configuration = webhooks.configuration("any", "packing", "Mutating")
    [webhook] = configuration["webhooks"]
    webhook["objectSelector"] = {"matchLabels": {"packed": "yes"}}
    del webhook["namespaceSelector"]  # the hub tries its samples as soon as its namespace exists
    labels = 'c.KubeSpawner.extra_labels = {"packed": "yes"}\n'
    with (
        scheduling(cluster, tmp_path, PACKING),
        configured(cluster, configuration),
        start_gpu_hub(T4 + labels) as hub,
    ):
        wait_for(lambda: block(hub))
        hub.start_until_ready("alice", {"accelerator": "t4"})
        assert hub.pods.bound("alice")["spec"]["schedulerName"] == PACKING["schedulerName"]

        refused = hub.start("bob", {"accelerator": "t4"})
        assert refused.status_code == 409, refused.text
        assert "The one Tesla T4 is in use right now." in refused.json()["message"]

        assert "unchecked" not in hub.log
        told = f"{PACKING['schedulerName']}, kube-scheduler with GKE's profile"
        assert f"scheduler set at admission: {told}, which changes only scores" in block(hub)


def test_a_scheduler_that_nobody_knows_is_a_warning_with_its_consequence(
    start_gpu_hub: StartGPUHub,
) -> None:
    with start_gpu_hub(T4 + 'c.KubeSpawner.scheduler_name = "volcano"\n') as hub:
        [warning] = [line for line in hub.log.splitlines() if "the scheduler volcano" in line]

    assert warning.startswith("[W ")
    assert "Every server of the scheduler volcano starts unchecked" in warning
    assert "GPUSpawner.default_filter_schedulers" in warning

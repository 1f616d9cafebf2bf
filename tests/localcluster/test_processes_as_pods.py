"""Pods whose containers run as processes of this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localcluster import LocalCluster
from localcluster.client import Object
from tests.fixtures.cluster import AddNodes
from tests.localcluster.seen import phase
from tests.waiting import wait_for

SAY_GPUS = """
import os, pynvml
pynvml.nvmlInit()
names = [pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(index))
         for index in range(pynvml.nvmlDeviceGetCount())]
print(len(os.environ["NVIDIA_VISIBLE_DEVICES"].split(",")), names)
"""


@pytest.fixture
def cluster(running_cluster: LocalCluster) -> LocalCluster:
    running_cluster.check()
    return running_cluster


def python_pod(name: str, program: str, gpus: int = 0, restarts: str = "Never") -> Object:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {
        "name": "notebook",
        "image": "example.org/python",
        "command": ["python3", "-c", program],
        "resources": {"limits": limits},
        "env": [
            {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "EMPTY"},
        ],
    }
    return {
        "metadata": {"name": name},
        "spec": {"restartPolicy": restarts, "containers": [container]},
    }


def read(cluster: LocalCluster, namespace: str, name: str) -> Object:
    return cluster.api.get(f"/api/v1/namespaces/{namespace}/pods/{name}")


def log(cluster: LocalCluster, namespace: str, name: str) -> str:
    path = cluster.directory / "pods" / f"{namespace}_{name}" / "notebook.log"
    return path.read_text() if path.exists() else ""


def is_running(pid: int) -> bool:
    try:
        # A zombie has ended, even if nobody has read its exit code.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_pods_status_has_a_containers_exit_code(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", python_pod("p", "exit(3)"))
    wait_for(lambda: phase(cluster, namespace, "p") == "Failed")

    [container] = read(cluster, namespace, "p")["status"]["containerStatuses"]

    assert container["state"]["terminated"]["exitCode"] == 3


def test_a_container_that_fails_restarts_and_its_status_has_the_last_exit_code(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    once = (
        "import os, pathlib, time; p = pathlib.Path('was here'); "
        "time.sleep(60) if p.exists() else (p.touch(), os.abort())"
    )
    pod = python_pod("p", once, restarts="OnFailure")
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", pod)

    def restarted() -> Object | None:
        status = read(cluster, namespace, "p")["status"]
        [container] = status.get("containerStatuses", [{}])
        is_up = status["phase"] == "Running" and container["restartCount"] == 1
        return container if is_up and container["ready"] else None

    assert wait_for(restarted)["lastState"]["terminated"]["exitCode"] == 134


def test_a_pod_with_gpus_sees_exactly_those(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("eks")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pod = python_pod("p", SAY_GPUS, gpus=3)
    pod["spec"]["tolerations"] = [{"operator": "Exists"}]
    cluster.api.create(pods, pod)
    wait_for(lambda: phase(cluster, namespace, "p") == "Succeeded")

    said = log(cluster, namespace, "p")

    assert said == f"3 {['Tesla V100-SXM2-16GB'] * 3}\n"


def test_in_a_pod_gpuspawner_finds_the_requested_number_of_gpus(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("on-premises")
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pod = python_pod("p", "")
    [container] = pod["spec"]["containers"]
    container["command"] = ["python3", "-m", "gpuspawner.nvml", "--expect", "2"]
    container["resources"] = {"limits": {"nvidia.com/mig-1g.5gb": "2"}}
    pod["spec"]["tolerations"] = [{"operator": "Exists"}]
    cluster.api.create(pods, pod)
    wait_for(lambda: phase(cluster, namespace, "p") in {"Succeeded", "Failed"})

    report = json.loads(log(cluster, namespace, "p"))

    assert phase(cluster, namespace, "p") == "Succeeded", report
    assert {gpu["name"] for gpu in report["devices"]} == {"NVIDIA A100-SXM4-40GB MIG 1g.5gb"}


def test_a_deleted_pod_leaves_no_process_even_in_another_session(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    stubborn = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "child = os.fork(); child or os.setsid(); "
        "print(os.getpid(), flush=True); time.sleep(60)"
    )
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.api.create(pods, python_pod("p", stubborn))
    wait_for(lambda: len(log(cluster, namespace, "p").split()) == 2)
    pids = [int(word) for word in log(cluster, namespace, "p").split()]
    assert all(is_running(pid) for pid in pids)

    cluster.api.delete(f"{pods}/p", grace=1)
    wait_for(lambda: not cluster.api.items(pods))

    wait_for(lambda: not any(is_running(pid) for pid in pids))


def test_a_missing_command_is_reported(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    pod = python_pod("p", "")
    pod["spec"]["containers"][0]["command"] = ["no-such-program"]
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", pod)
    wait_for(lambda: phase(cluster, namespace, "p") == "Failed")

    [container] = read(cluster, namespace, "p")["status"]["containerStatuses"]

    ended = container["state"]["terminated"]
    assert ended["exitCode"] == 128
    assert ended["message"] == 'exec: "no-such-program": No such file or directory'

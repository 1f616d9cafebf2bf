"""Pods whose containers run as processes of this machine."""

from __future__ import annotations

import json

import pytest

from localcluster import LocalCluster
from localcluster.client import Object
from tests.fixtures.cluster import AddNodes
from tests.localcluster.seen import phase
from tests.processes import is_running
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

SAY_GPUS = """
import os, pynvml
pynvml.nvmlInit()
names = [pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(index))
         for index in range(pynvml.nvmlDeviceGetCount())]
print(len(os.environ["NVIDIA_VISIBLE_DEVICES"].split(",")), names)
"""
SAY_UUIDS = """
import pynvml
pynvml.nvmlInit()
for index in range(pynvml.nvmlDeviceGetCount()):
    print(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index)))
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


def log(cluster: LocalCluster, namespace: str, name: str, container: str = "notebook") -> str:
    path = cluster.directory / "pods" / f"{namespace}_{name}" / f"{container}.log"
    return path.read_text() if path.exists() else ""


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


def test_an_init_container_has_the_gpus_of_its_pod(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("eks")
    pod = python_pod("p", SAY_UUIDS, gpus=4)
    [container] = pod["spec"]["containers"]
    pod["spec"]["initContainers"] = [{**container, "name": "first"}]
    pod["spec"]["tolerations"] = [{"operator": "Exists"}]
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", pod)
    wait_for(lambda: phase(cluster, namespace, "p") == "Succeeded")

    said = log(cluster, namespace, "p")

    assert len(said.split()) == 4
    assert log(cluster, namespace, "p", "first") == said


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
    assert ended["message"] == (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
        "runc create failed: unable to start container process: error during container init: "
        'exec: "no-such-program": executable file not found in $PATH'
    )


def test_the_last_lines_of_a_failed_container_are_its_message_if_it_asks_for_them(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    pod = python_pod("p", "print(*range(100), sep='\\n'); exit('no licence')")
    pod["spec"]["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError"
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", pod)
    wait_for(lambda: phase(cluster, namespace, "p") == "Failed")

    [container] = read(cluster, namespace, "p")["status"]["containerStatuses"]

    lines = container["state"]["terminated"]["message"].splitlines()
    assert len(lines) == 80
    # Python's standard output is a file, so it is written at the end.
    assert set(lines[-2:]) & {"99", "no licence"}


def test_a_pod_may_ask_for_a_server_that_never_listens(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    pod = python_pod("p", "print('listening')")
    pod["metadata"]["annotations"] = {"localcluster/hangs": "true"}
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", pod)
    wait_for(lambda: phase(cluster, namespace, "p") == "Running")

    status = read(cluster, namespace, "p")["status"]

    assert (status["containerStatuses"][0]["ready"], "podIP" in status) == (True, True)
    assert not (cluster.directory / "pods" / f"{namespace}_p").exists()


def test_a_pod_may_ask_for_its_process_to_end_before_its_time(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    pod = python_pod("p", "")
    # In a command, Kubernetes reads $$ as $.
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", "echo $$$$; exec sleep 600"]
    pod["metadata"]["annotations"] = {
        "localcluster/exits-after": "3",
        "localcluster/exit-code": "137",
        "localcluster/exit-reason": "OOMKilled",
    }
    pod["spec"]["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError"
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", pod)
    wait_for(lambda: phase(cluster, namespace, "p") == "Failed")

    [container] = read(cluster, namespace, "p")["status"]["containerStatuses"]

    ended = container["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (137, "OOMKilled")
    assert ended["message"] == log(cluster, namespace, "p")
    assert not is_running(int(ended["message"]))


def test_a_process_has_the_variables_of_secrets_and_config_maps(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    path = f"/api/v1/namespaces/{namespace}"
    secret = {"metadata": {"name": "hub"}, "stringData": {"token": "$(ADDRESS) is text"}}
    settings = {"metadata": {"name": "settings"}, "data": {"A": "1", "B": "2"}}
    cluster.api.create(f"{path}/secrets", secret)
    cluster.api.create(f"{path}/configmaps", settings)
    program = "import os; print(*(os.environ[name] for name in ('TOKEN', 'S_A', 'S_B')))"
    pod = python_pod("p", program)
    [container] = pod["spec"]["containers"]
    token = {"secretKeyRef": {"name": "hub", "key": "token"}}
    container["env"].append({"name": "TOKEN", "valueFrom": token})
    container["envFrom"] = [{"prefix": "S_", "configMapRef": {"name": "settings"}}]
    cluster.api.create(f"{path}/pods", pod)
    wait_for(lambda: phase(cluster, namespace, "p") == "Succeeded")

    assert log(cluster, namespace, "p") == "$(ADDRESS) is text 1 2\n"


def test_a_restarted_container_s_message_has_nothing_of_the_run_before(
    cluster: LocalCluster, namespace: str, add_nodes: AddNodes
) -> None:
    add_nodes("single")
    counting = (
        "import pathlib; p = pathlib.Path('runs'); "
        "n = len(p.read_text()) if p.exists() else 0; p.write_text('x' * (n + 1)); "
        "exit(f'run {n}')"
    )
    pod = python_pod("p", counting, restarts="Always")
    pod["spec"]["containers"][0]["terminationMessagePolicy"] = "FallbackToLogsOnError"
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", pod)

    def last_message() -> str:
        [container] = read(cluster, namespace, "p")["status"].get("containerStatuses", [{}])
        return str(container.get("lastState", {}).get("terminated", {}).get("message", ""))

    wait_for(lambda: last_message() == "run 1\n")

"""The how-to for k3s: what it says of k3s' labels and volumes is what the hub makes of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gpuspawner.offers.discovery import discover
from gpuspawner.scheduling import ClusterState, evaluate

PAGE = (Path(__file__).parents[2] / "docs/how-to/k3s.md").read_text()
HOSTNAME = "kubernetes.io/hostname"
NONE_OF = (
    "namespaces",
    "storageClasses",
    "csiNodes",
    "csiDrivers",
    "csiStorageCapacities",
    "volumeAttachments",
    "priorityClasses",
    "deviceClasses",
)


def machine(name: str) -> dict[str, Any]:
    labels = {"node.kubernetes.io/instance-type": "k3s", HOSTNAME: name}
    amounts = {"nvidia.com/gpu": "1", "cpu": "8", "memory": "32Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    gpu = {"nvidia.com/gpu": "1"}
    container = {"name": "notebook", "image": "lab", "resources": {"limits": gpu, "requests": gpu}}
    return {
        "metadata": {"name": name, "namespace": "jhub"},
        "spec": {"containers": [container], **spec},
    }


def test_without_a_label_for_the_model_all_gpus_are_one_accelerator() -> None:
    found = discover(ClusterState.from_objects(nodes=[machine("gpu-1"), machine("gpu-2")], pods=[]))

    [accelerator] = found
    assert f"one accelerator *{accelerator.display_name}*" in PAGE


def test_a_home_directory_on_one_machine_keeps_its_user_off_the_others() -> None:
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": ["gpu-1"]}]}]
    volume = {
        "metadata": {"name": "pv"},
        "spec": {
            "claimRef": {"namespace": "jhub", "name": "home"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }
    claim = {
        "metadata": {
            "name": "home",
            "namespace": "jhub",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": "pv", "storageClassName": "local-path"},
        "status": {"phase": "Bound"},
    }
    state = ClusterState.from_objects(
        nodes=[machine("gpu-1"), machine("gpu-2")],
        pods=[pod("other", nodeName="gpu-1")],
        persistentVolumeClaims=[claim],
        persistentVolumes=[volume],
        **{kind: [] for kind in NONE_OF},
    )
    home = {"name": "home", "persistentVolumeClaim": {"claimName": "home"}}

    said = evaluate(state, pod("alice", volumes=[home])).message

    [quoted] = re.findall(r"```text\n(.*)\n```", PAGE)
    assert said.startswith(quoted)

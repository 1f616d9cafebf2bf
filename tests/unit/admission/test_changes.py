"""Comparing pods before and after admission, as a real API server returns them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from gpuspawner.admission.dry_run import changes

SENT: dict[str, Any] = {
    "metadata": {"name": "jupyter-alice"},
    "spec": {
        "containers": [{"name": "notebook", "resources": {"limits": {"memory": "1024Mi"}}}],
        "tolerations": [{"key": "hub.jupyter.org/dedicated", "operator": "Exists"}],
    },
}


def admitted() -> dict[str, Any]:
    """Return what a plain cluster's dry run returns: defaults, and a generated name."""
    pod = deepcopy(SENT)
    pod["metadata"] = {"name": "jupyter-alice-x7k2p", "generateName": "jupyter-alice-"}
    spec = pod["spec"]
    spec["containers"][0]["resources"] = {
        "limits": {"memory": "1Gi"},
        "requests": {"memory": "1Gi"},
    }
    spec["priority"] = 0
    spec["schedulerName"] = "default-scheduler"
    for condition in ("not-ready", "unreachable"):
        spec["tolerations"].append(
            {
                "key": f"node.kubernetes.io/{condition}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
        )
    return pod


def test_defaults_that_every_pod_gets_change_nothing() -> None:
    assert not changes(SENT, admitted())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nodeSelector", {"pool": "a"}),
        ("affinity", {"nodeAffinity": {}}),
        ("overhead", {"memory": "1Mi"}),
        ("priorityClassName", "high"),
        ("runtimeClassName", "nvidia"),
        ("schedulerName", "other"),
        ("tolerations", [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]),
        ("tolerations", []),
        ("topologySpreadConstraints", [{"maxSkew": 1}]),
        ("initContainers", [{"name": "side"}]),
        ("containers", [{"name": "notebook", "resources": {"limits": {"memory": "2Gi"}}}]),
        ("containers", [{"name": "notebook", "resources": {"requests": {"memory": "oops"}}}]),
    ],
)
def test_a_field_that_the_scheduler_uses_counts_as_a_change(name: str, value: object) -> None:
    pod = admitted()
    pod["spec"][name] = value

    assert changes(SENT, pod)


@pytest.mark.parametrize("broken", [None, [], {"spec": []}, {"spec": {"containers": [None, 3]}}])
def test_undecodable_pods_can_be_compared(broken: object) -> None:
    assert changes(SENT, broken)
    assert not changes(broken, broken)

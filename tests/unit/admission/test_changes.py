"""Whether admission changed what decides, on pods as the API server really gives them back."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from gpuspawner.admission.changes import changes

SENT: dict[str, Any] = {
    "metadata": {"name": "jupyter-alice"},
    "spec": {
        "containers": [{"name": "notebook", "resources": {"limits": {"memory": "1024Mi"}}}],
        "tolerations": [{"key": "hub.jupyter.org/dedicated", "operator": "Exists"}],
    },
}


def admitted() -> dict[str, Any]:
    """What a cluster with nothing special gives back: defaults, and a name that it made."""
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
def test_what_decides_counts_as_changed(name: str, value: object) -> None:
    pod = admitted()
    pod["spec"][name] = value

    assert changes(SENT, pod)


@pytest.mark.parametrize("odd", [None, [], {"spec": []}, {"spec": {"containers": [None, 3]}}])
def test_nothing_is_too_odd_to_be_compared(odd: object) -> None:
    assert changes(SENT, odd)
    assert not changes(odd, odd)

"""Keeping a pod off nodes, for certain or if others have room."""

from __future__ import annotations

from typing import Any

import pytest

from gpuspawner.kube.objects import convert
from gpuspawner.offers.elsewhere import off, rather_off
from gpuspawner.offers.vendors import HOSTNAME
from gpuspawner.scheduling.evaluate import evaluate
from gpuspawner.scheduling.state import ClusterState
from tests.unit.makers.worlds import Plain, node, pod

PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
OWN: Plain = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["a100"]}]},
            {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["t4"]}]},
        ]
    },
    PREFERRED: [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
    ],
}


def named(name: str) -> Any:
    made: Any = node(name, 2)
    made["metadata"]["labels"][HOSTNAME] = f"host-{name}"
    return made


def feasible(made: Any) -> set[str]:
    state = ClusterState.from_objects(nodes=[named(name) for name in "abc"], pods=[])
    state.mark_known("DeviceClass")
    return set(evaluate(state, convert("Pod", made)).feasible)


@pytest.mark.parametrize("affinity", [{}, {"nodeAffinity": OWN}])
def test_a_pod_kept_off_nodes_fits_on_the_others_only(affinity: Plain) -> None:
    given = pod("p", 1, affinity=affinity)
    before = repr(given)

    assert feasible(given) == {"a", "b", "c"}
    assert feasible(off(given, ["host-a", "host-b"])) == {"c"}
    assert repr(given) == before


@pytest.mark.parametrize("affinity", [None, {"nodeAffinity": None}, {"nodeAffinity": OWN}])
def test_a_preference_forbids_no_node_and_replaces_nothing(affinity: Plain | None) -> None:
    given: Any = pod("p", 1, affinity=affinity)
    made = rather_off(given, ["host-a"])

    assert feasible(made) == {"a", "b", "c"}
    own: Any = (affinity or {}).get("nodeAffinity") or {}
    made_node = made["spec"]["affinity"]["nodeAffinity"]
    *others, last = made_node[PREFERRED]
    assert others == own.get(PREFERRED, [])
    assert {**made_node, PREFERRED: None} == {**own, PREFERRED: None}
    avoided = {"key": HOSTNAME, "operator": "NotIn", "values": ["host-a"]}
    assert last == {"weight": 100, "preference": {"matchExpressions": [avoided]}}

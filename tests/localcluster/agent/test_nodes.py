"""When the agent reports a node Ready."""

from __future__ import annotations

import pytest

from localcluster.agent.nodes import is_registered

NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("spec", "registered"),
    [
        ({}, True),
        ({"taints": [NOT_READY]}, True),
        ({"taints": [NOT_READY, UNREGISTERED]}, False),
    ],
)
def test_a_node_of_karpenter_s_is_ready_only_after_its_registration(
    spec: dict[str, object], registered: bool
) -> None:
    assert is_registered({"spec": spec}) is registered

"""What KubeSpawner does with the pod of a start that has failed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gpuspawner.compat.kubespawner import Stock

CONTAINERS = [{"name": "notebook", "state": {"waiting": {"reason": "ContainerCreating"}}}]


def stock(status: dict[str, Any] | None, *, deletes: bool = True) -> Stock:
    spawner: Any = SimpleNamespace(
        namespace="hub",
        pod_name="jupyter-ann",
        delete_stopped_pods=deletes,
        reflectors={},
        _get_reflector_key=lambda kind: kind,
    )
    if status is not None:
        spawner.reflectors["pods"] = SimpleNamespace(pods={"hub/jupyter-ann": {"status": status}})
    return Stock(None, spawner)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Failed"])
def test_a_pod_with_containers_is_stopped_by_kubespawner(phase: str) -> None:
    assert stock({"phase": phase, "containerStatuses": CONTAINERS}).stops_pod()


@pytest.mark.parametrize(
    "status",
    [None, {}, {"phase": "Pending"}, {"phase": "Failed"}, {"containerStatuses": []}],
    ids=["unseen", "new", "may still be refused by its node", "refused by its node", "empty"],
)
def test_a_pod_without_containers_is_not(status: dict[str, Any] | None) -> None:
    assert not stock(status).stops_pod()


def test_a_failed_pod_is_kept_if_the_administrator_keeps_stopped_pods() -> None:
    assert stock({"phase": "Failed"}, deletes=False).stops_pod()

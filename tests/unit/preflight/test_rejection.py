from __future__ import annotations

import pytest

from gpuspawner.preflight.rejection import unit_of


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("requests.cpu", "cpu"),
        ("limits.memory", "memory"),
        ("requests.ephemeral-storage", "ephemeral-storage"),
        ("gold.storageclass.storage.k8s.io/requests.storage", "storage"),
        ("gold.storageclass.storage.k8s.io/persistentvolumeclaims", ""),
        ("requests.nvidia.com/gpu", ""),
        ("count/pods", ""),
        ("example.com/memory", ""),
    ],
)
def test_a_resource_has_its_unit_under_every_name(resource: str, unit: str) -> None:
    assert unit_of(resource) == unit

"""What the doctor says of the hub's settings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from kubespawner import KubeSpawner
from traitlets.config import Config

from gpuspawner import GPUSpawner
from gpuspawner.commands.checks import settings


class TheirSpawner(GPUSpawner):
    """A class of an administrator's."""


@pytest.mark.parametrize(
    ("spawner_class", "expected"),
    [
        (None, ["spawner-class"]),
        ("gpuspawner", []),
        ("GPUSpawner", []),  # the hub finds classes by their names in lower case
        ("gpuspawner.GPUSpawner", []),
        (GPUSpawner, []),
        (TheirSpawner, []),
        ("kubespawner.KubeSpawner", ["spawner-class"]),
        (KubeSpawner, ["spawner-class"]),
        ("nowhere.Spawner", ["spawner-class"]),
    ],
)
def test_the_hub_must_use_our_class(spawner_class: Any, expected: list[str]) -> None:
    config = Config()
    if spawner_class is not None:
        config.JupyterHub.spawner_class = spawner_class
    hub: Any = SimpleNamespace(config=config, spawner=SimpleNamespace(preflight="enforce"))

    assert [finding.id for finding in settings.check(hub)] == expected

"""What the doctor says of the hub's settings."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubespawner import KubeSpawner
from traitlets.config import Config

from gpuspawner import GPUSpawner
from gpuspawner.configuration import check, load
from gpuspawner.doctor.checks import settings


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


def set_queue(spawner: Any) -> None:
    spawner.queue = "mine"


def test_names_that_are_traits_of_ours_are_found() -> None:
    spawner = check(Config({"KubeSpawner": {"pre_spawn_hook": set_queue}}))
    hub: Any = SimpleNamespace(config=Config(), spawner=spawner)

    [finding] = settings.check_names(hub)

    assert (finding.id, finding.severity) == ("same-name", "warning")
    assert finding.text.startswith("pre_spawn_hook sets queue: ")


@pytest.mark.parametrize(("called", "expected"), [(True, []), (False, ["spawner-class"])])
def test_an_own_class_that_is_set_after_configure_is_wrapped(
    tmp_path: Path, called: bool, expected: list[str]
) -> None:
    lines = [
        "import gpuspawner, kubespawner",
        "c = get_config()",
        "gpuspawner.configure(c)" if called else "",
        "class OurSpawner(kubespawner.KubeSpawner): pass",
        "c.JupyterHub.spawner_class = OurSpawner",
    ]
    file = tmp_path / "jupyterhub_config.py"
    file.write_text("\n".join(lines))
    hub: Any = SimpleNamespace(config=load(file), spawner=SimpleNamespace(preflight="enforce"))

    assert [finding.id for finding in settings.check(hub)] == expected

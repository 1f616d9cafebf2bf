"""A misconfigured hub ends at once and says why; a hub without configuration works."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest

from gpuspawner.gates.sources import FORM_PATIENCE
from tests.fixtures.cluster import AddNodes
from tests.hub.conftest import StartGPUHub
from tests.hub.people import Person
from tests.hub.process import start_hub_process
from tests.waiting import wait_for

CONFIGURED = "import gpuspawner\nc = get_config()\n{lines}\ngpuspawner.configure(c)\n{after}\n"
A100 = 'c.GPUSpawner.accelerators = {"a100": {"node_selector": {"gpu": "a100"}}}'


def log_of_a_hub_that_ends(folder: Path, configuration: str) -> str:
    """Start a hub, check that it ends with an error before it serves, and return its log."""
    (folder / "jupyterhub_config.py").write_text(configuration)
    process = start_hub_process(folder, {"KUBECONFIG": str(folder / "none")})
    process.join(120)
    process.kill()
    assert process.exitcode == 1
    return (folder / "hub.log").read_text()


TYPO = 'c.GPUSpawner.accelerators = {"a100": {"node_selctor": {}}}'
LOCAL = "jupyterhub.spawner.LocalProcessSpawner"


def test_a_broken_configuration_stops_the_hub_with_the_trait_s_name(tmp_path: Path) -> None:
    log = log_of_a_hub_that_ends(tmp_path, CONFIGURED.format(lines=TYPO, after=""))

    assert "accelerators['a100']" in log


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ('c.GPUSpawner.memory_choices = ["8Gib"]', "GPUSpawner.memory_choices[0]"),
        (
            f'c.JupyterHub.spawner_class = "{LOCAL}"',
            f"JupyterHub.spawner_class is <class '{LOCAL}'>, which isn't a KubeSpawner; remove",
        ),
    ],
    ids=["a trait", "another class"],
)
def test_lines_after_configure_are_checked_too(tmp_path: Path, after: str, told: str) -> None:
    log = log_of_a_hub_that_ends(tmp_path, CONFIGURED.format(lines=A100, after=after))

    assert told in log
    assert "Traceback" not in log


def _form_shows(person: Person, model: str) -> bool:
    """The first form waits 3 s for the view, which may take longer on a busy machine."""
    began = time.monotonic()
    shown = model in person.open("/hub/spawn").text
    assert shown or time.monotonic() - began >= FORM_PATIENCE
    return shown


@pytest.mark.each_hub
def test_with_the_spawner_class_alone_everything_works(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes("gke")
    # The configuration doesn't call gpuspawner.configure(c).
    lines = 'gpuspawner.configure = lambda c: None\nc.JupyterHub.spawner_class = "gpuspawner"'
    with start_gpu_hub(lines) as hub:
        wait_for(partial(_form_shows, hub.person("alice"), "P100"))

        hub.start("alice", {"accelerator": "tesla-p100", "gpus": 1})

        assert hub.pods.bound("alice")["spec"]["nodeName"] == "p100-0"
        assert "GPUSpawner.accelerators is empty" in hub.log
        assert hub.log.count("gpuspawner.configure(c) wasn't called") == 1
        hub.until_ready("alice")

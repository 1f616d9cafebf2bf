"""base.yaml and profiles.yaml: a hub's profiles, as the chart passes them to KubeSpawner."""

from __future__ import annotations

import re
from typing import Any

import pytest
from traitlets.config import Config

from gpuspawner import GPUSpawner
from gpuspawner.configuration import ConfigurationError
from tests.helm.chart import Chart, merged, read
from tests.unit.makers.hubs import StillHub
from tests.unit.makers.worlds import Plain, pod

GKE = "cloud.google.com/gke-accelerator"


def configured(*files: dict[str, Any]) -> Config:
    """The configuration as files/hub/jupyterhub_config.py of the chart 4.4.0 makes it."""
    values = merged(*files)
    c = Config()
    c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
    c.KubeSpawner.profile_list = values["singleuser"]["profileList"]
    for name, section in values["hub"].get("config", {}).items():
        c[name].update(section)
    for _, program in sorted(values["hub"]["extraConfig"].items()):
        exec(program, {"c": c, "get_config": None})
    return c


def gke_node(name: str, model: str, gpus: int) -> tuple[str, Plain]:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    return "Node", {
        "metadata": {"name": name, "labels": {GKE: model}},
        "spec": {"taints": [taint]},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def cpu_node(name: str) -> tuple[str, Plain]:
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts}
    return "Node", {"metadata": {"name": name}, "status": status}


def test_the_chart_accepts_them(chart: Chart):
    assert chart.faults(read("base"), read("profiles")) == []


def test_the_hub_starts_with_them():
    assert configured(read("base"), read("profiles")).JupyterHub.spawner_class is GPUSpawner


def test_an_image_that_is_typed_in_comes_from_the_registry_that_is_named():
    [t4] = [it for it in read("profiles")["singleuser"]["profileList"] if it.get("slug") == "t4"]
    written = t4["profile_options"]["image"]["unlisted_choice"]["validation_regex"]

    assert re.match(written, "quay.io/jupyter/lab:1")
    # Without a dot and a port, the first part is a user of Docker Hub.
    assert not re.match(written, "quayxio/lab:1")


def test_offers_in_addition_to_profiles_stop_the_hub():
    beside = {"hub": {"config": {"GPUSpawner": {"memory_choices": ["8Gi"]}}}}

    with pytest.raises(ConfigurationError, match=r"memory_choices and KubeSpawner\.profile_list"):
        configured(read("base"), read("profiles"), beside)


async def test_each_profile_shows_its_availability(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = configured(read("base"), read("profiles")).KubeSpawner.profile_list
    taken = ("Pod", pod("somebody-s", 6, on="a100", nodeSelector={}))

    nodes = (cpu_node("core"), gke_node("a100", "nvidia-tesla-a100", 8))
    hub = StillHub(monkeypatch, *nodes, taken)
    form = await hub.spawner(profile_list=listed).gpuspawner_gates.sources.current.form()

    assert "<p>For courses and for writing.</p>" in form
    assert "New machine</span> takes about 8 minutes to start" in form
    assert ">1 (Free: 2 of 8 free)<" in form
    assert ">4 (In use: 2 of 8 free)<" in form
    assert ">PyTorch<" in form

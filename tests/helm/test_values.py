"""helm-values against the Zero-to-JupyterHub chart's own schema."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.helm.chart import CLOUDS, WAYS, Chart, read

IDLE_GPU_SERVERS = Path(__file__).parents[2] / "docs/how-to/idle-gpu-servers.md"


def test_the_chart_accepts_the_base_alone(chart: Chart):
    assert chart.faults(read("base")) == []


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_chart_accepts_the_base_with_each_cloud(chart: Chart, cloud: str):
    assert chart.faults(read("base"), read(cloud)) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("choices", ["choices", "profiles"])
def test_the_chart_accepts_each_way_to_install(chart: Chart, way: str, choices: str):
    assert chart.faults(read("base"), read(choices), read(way)) == []


def test_the_chart_accepts_the_culler_of_idle_gpu_servers(chart: Chart):
    [values] = re.findall(r"```yaml\n(.*?)```", IDLE_GPU_SERVERS.read_text(), re.DOTALL)

    assert chart.faults(read("base"), yaml.safe_load(values)) == []


@pytest.mark.parametrize(
    ("mistake", "place"),
    [
        ({"hub": {"extraCofig": {"zz": "pass"}}}, "hub"),
        ({"hub": {"config": {"gpuspawner": {}}}}, "hub.config"),
        ({"hub": {"config": {"GPUSpawner": None}}}, "hub.config.GPUSpawner"),
        ({"hub": {"image": {"name": "registry/hub", "tga": "1"}}}, "hub.image"),
        ({"singleuser": {"startTimeout": "900"}}, "singleuser.startTimeout"),
        ({"prePuller": {"extraImages": {"cuda": {"name": "cuda"}}}}, "prePuller.extraImages.cuda"),
        ({"gpuspawner": {}}, ""),
    ],
)
def test_a_mistake_in_an_administrators_file_is_caught(chart: Chart, mistake: dict, place: str):
    (fault,) = chart.faults(read("base"), mistake)

    assert fault.startswith(f"{place}: ")


def test_the_chart_s_own_scheduler_stays_on(chart: Chart):
    for name in ("base", "profiles"):
        assert chart.values(read(name))["scheduling"]["userScheduler"]["enabled"] is True

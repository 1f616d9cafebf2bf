"""helm-values against the Zero-to-JupyterHub chart's own schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gpuspawner.offers.offers import Offers
from tests.docs.platforms import OF_THE_CHART
from tests.helm.chart import CLOUDS, VALUES, WAYS, Chart, Values, read

K3S = Path(__file__).parents[1] / "k3s" / "mine.yaml"
IDLE_GPU_SERVERS = Path(__file__).parents[2] / "docs/how-to/idle-gpu-servers.md"


GPU_SPAWNER, PULLERS = "hub.config.GPUSpawner", "prePuller.extraTolerations"
IN_A_CONTAINER = {
    "hub.initContainers",
    "hub.extraVolumes",
    "hub.extraVolumeMounts",
    "hub.extraEnv.PYTHONPATH",
}
#: All that the values files set, as their first lines and the how-to say.
SETS = {
    "base": {GPU_SPAWNER, "hub.extraConfig.zz-gpuspawner"},
    "choices": {GPU_SPAWNER, "prePuller.extraImages.minimal"},
    "profiles": {"singleuser.profileList", "prePuller.pullProfileListImages"},
    "install-image": {"hub.image.name", "hub.image.tag"},
    "install-from-index": IN_A_CONTAINER,
    "install-from-configmap": IN_A_CONTAINER,
    **{cloud: {GPU_SPAWNER, PULLERS} for cloud in CLOUDS},
}
#: These are for kubectl.
OBJECTS = {"rbac", "rbac-minimal", "pull-images"}


def paths(values: Values, place: str = "") -> Iterator[str]:
    for key, value in values.items():
        here = f"{place}.{key}".lstrip(".")
        if isinstance(value, dict) and here not in {it for each in SETS.values() for it in each}:
            yield from paths(value, here)
        else:
            yield here


@pytest.mark.parametrize("name", SETS)
def test_a_values_file_sets_what_it_says_and_nothing_else(name: str):
    assert set(paths(read(name))) == SETS[name]


def test_no_values_file_is_left_out():
    assert {path.stem for path in VALUES.glob("*.yaml")} == {*SETS, *OBJECTS}


@pytest.mark.parametrize("name", [name for name, sets in SETS.items() if PULLERS in sets])
def test_the_first_lines_say_that_the_image_pullers_are_changed(name: str):
    head, _, _ = (VALUES / f"{name}.yaml").read_text().partition("\nhub:")

    assert "image pullers" in head.replace("\n# ", " ")


def test_no_image_with_cuda_is_pulled_to_every_node():
    assert read("profiles")["prePuller"]["pullProfileListImages"] is False


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


@pytest.mark.parametrize("example", OF_THE_CHART)
def test_the_chart_accepts_the_values_of_the_how_tos_for_clouds(chart: Chart, example: str):
    assert chart.faults(read("base"), OF_THE_CHART[example]) == []


def test_the_chart_accepts_the_values_of_the_test_on_k3s(chart: Chart):
    mine = yaml.safe_load(K3S.read_text())

    assert chart.faults(read("base"), read("install-from-configmap"), mine) == []
    assert Offers.parse(**mine["hub"]["config"]["GPUSpawner"]).accelerators["fake"].counts == (1, 2)


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

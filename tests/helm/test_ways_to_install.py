"""The files that install gpuspawner without an image."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import gpuspawner
from tests.helm.chart import Chart, Values, read

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "zero-to-jupyterhub.md"
WITHOUT_AN_IMAGE = ("install-from-index", "install-from-configmap")


def init_container(way: str) -> Values:
    (container,) = read(way)["hub"]["initContainers"]
    return container


def pinned(text: str) -> dict[str, str]:
    return dict(re.findall(r"\b([a-z]+)==([\w.]+\w)", text))


@pytest.mark.parametrize("way", WITHOUT_AN_IMAGE)
def test_it_runs_the_hubs_image_with_the_security_context_of_the_hub(chart: Chart, way: str):
    hub = chart.values(read(way))["hub"]
    container = init_container(way)

    assert container["image"] == f"{hub['image']['name']}:{hub['image']['tag']}"
    assert container["securityContext"] == hub["containerSecurityContext"]


@pytest.mark.parametrize("way", WITHOUT_AN_IMAGE)
def test_the_hub_imports_what_the_init_container_installs_and_nothing_else(way: str):
    hub = read(way)["hub"]
    (command,) = init_container(way)["command"][2:]
    folder = hub["extraEnv"]["PYTHONPATH"]

    assert "--no-deps " in command
    assert f"--target {folder} " in command
    mounts = [*init_container(way)["volumeMounts"], *hub["extraVolumeMounts"]]
    assert [mount["name"] for mount in mounts if mount["mountPath"] == folder] == ["gpuspawner"] * 2
    assert {mount["name"] for mount in mounts} == {volume["name"] for volume in hub["extraVolumes"]}


def test_the_index_has_this_version_and_the_versions_that_it_needs():
    metadata = ConfigParser()
    metadata.read(ROOT / "setup.cfg")
    lines = metadata["options"]["install_requires"].split()
    needed = {requirement.name: requirement for requirement in map(Requirement, lines)}

    (command,) = init_container("install-from-index")["command"][2:]
    versions = pinned(command)

    assert versions.pop("gpuspawner") == gpuspawner.__version__
    for name, version in versions.items():
        assert Version(version) in needed[name].specifier


def test_the_page_downloads_the_same_versions():
    (command,) = init_container("install-from-index")["command"][2:]

    assert pinned(command).items() >= pinned(PAGE.read_text()).items() != set()

"""The files that install gpuspawner without an image."""

from __future__ import annotations

import re
import subprocess
from configparser import ConfigParser
from itertools import takewhile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import gpuspawner
from tests.helm.chart import VALUES, Chart, Values, read
from tests.helm.install.page import commands

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "zero-to-jupyterhub.md"
WITHOUT_AN_IMAGE = ("install-from-index", "install-from-configmap")
#: Where each way makes the wheel.
MADE = [("An image", "dist"), ("A package index", "dist"), ("A ConfigMap", "wheels/gpuspawner")]


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


def requirements() -> dict[str, str]:
    """The lines that pip reads in the init container, by the package."""
    (command,) = init_container("install-from-index")["command"][2:]
    joined = command.replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if "==" in line]
    return {line.strip().partition("==")[0]: line for line in lines}


def test_nobody_else_can_put_code_into_the_hub_by_a_name_on_an_index():
    """Nobody owns the name gpuspawner on the public index, so whoever registers it could."""
    container = init_container("install-from-index")
    variables = {it["name"]: it["value"] for it in container["env"]}
    (command,) = container["command"][2:]

    assert variables == {"PIP_INDEX_URL": "https://ADDRESS/simple"}
    assert "--require-hashes" in command
    assert "index-url" not in command
    found = requirements()
    assert list(found) == ["gpuspawner", "msgspec", "regex"]
    assert "--hash=sha256:HASH" in found.pop("gpuspawner")
    for line in found.values():
        assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", line)) == 2  # x86-64 and ARM


def test_the_file_says_why():
    comments = " ".join(re.findall(r"# (.*)", (VALUES / "install-from-index.yaml").read_text()))

    assert "Nobody owns the name gpuspawner" in comments


@pytest.mark.parametrize(("section", "folder"), MADE)
def test_an_older_wheel_never_stays_beside_the_new_one(section: str, folder: str, tmp_path: Path):
    """Pip would find two versions; and an older build leaves modules for the next wheel."""
    for stale in (f"{folder}/gpuspawner-0.0.1-py3-none-any.whl", "build/lib/gpuspawner/old.py"):
        (tmp_path / stale).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / stale).touch()

    before = takewhile(lambda it: not it.startswith("$ pip"), commands(section))
    for command in before:
        subprocess.run(["sh", "-c", command.removeprefix("$ ")], cwd=tmp_path, check=True)

    assert not list(tmp_path.rglob("*.*"))


def test_each_build_of_the_image_has_a_tag_of_its_own():
    """A node that has an image with a tag doesn't pull another one with this tag."""
    tag = read("install-image")["hub"]["image"]["tag"]

    assert re.fullmatch(r"\d+\.\d+\.\d+-\d+", tag)
    build, push = commands("An image")[-2:]
    assert f"--build-arg CHART={tag.partition('-')[0]} " in build
    for command in (build, push, (VALUES / "hub.Dockerfile").read_text()):
        assert f"REGISTRY/k8s-hub-gpuspawner:{tag}" in command


def test_the_page_downloads_the_same_versions():
    (command,) = init_container("install-from-index")["command"][2:]

    assert pinned(command).items() >= pinned(PAGE.read_text()).items() != set()

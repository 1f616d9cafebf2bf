"""The how-to's commands that write values: the administrator's own, and ours for another chart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.helm.chart import CLOUDS, WAYS, Values, merged, read
from tests.helm.install.page import commands

OWN: Values = {"hub": {"config": {"Authenticator": {"admin_users": ["ann"]}}}}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with a program `helm` that prints what the file `release` has, as helm does."""
    (tmp_path / "helm").write_text("#!/bin/sh\ncat release\n")
    (tmp_path / "helm").chmod(0o755)
    return tmp_path


def follow(section: str, source: Path) -> None:
    path = os.pathsep.join([str(source), str(Path(sys.executable).parent), os.environ["PATH"]])
    for command in commands(section):
        line = command.removeprefix("$ ")
        environment = {**os.environ, "PATH": path}
        subprocess.run(["sh", "-c", line], cwd=source, env=environment, check=True)


def find(source: Path, *installed: Values) -> None:
    """Run the step on a hub whose release has these values."""
    (source / "release").write_text(yaml.safe_dump(merged(*installed)))
    follow("1. Find your values", source)


def test_mine_yaml_has_the_values_of_a_hub_without_gpuspawner(source: Path):
    find(source, OWN)

    assert yaml.safe_load((source / "mine.yaml").read_text()) == OWN


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("offers", ["choices", "profiles", *CLOUDS])
def test_the_step_done_again_does_not_freeze_the_installation(source: Path, way: str, offers: str):
    """mine.yaml is named last, so its wheels would hide a new image, and removal remove nothing."""
    find(source, OWN)

    find(source, read("base"), read(way), read(offers), OWN)

    assert yaml.safe_load((source / "mine.yaml").read_text()) == OWN


def test_whoever_has_lost_mine_yaml_gets_no_frozen_one(source: Path):
    find(source, read("base"), read("install-from-configmap"), OWN)

    assert not (source / "mine.yaml").exists()


def test_a_chart_that_depends_on_the_hub_s_gets_the_values_below_its_name(source: Path):
    follow("If your hub has configuration of its own", source)

    values = yaml.safe_load((source / "gpuspawner.yaml").read_text())
    assert values == {"jupyterhub": merged(read("base"), read("install-from-configmap"))}

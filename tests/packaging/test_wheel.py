"""The wheel that an administrator installs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from build import ProjectBuilder

from tests.packaging.conftest import copy_project, project_files

CONFIG_MAP = 1024 * 1024
"""What a ConfigMap holds, in bytes."""

PROGRAM = """
import json, sys
import gpuspawner, gpuspawner.nvml
LEFT_OUT = {"jupyterhub", "kubespawner", "kubernetes_asyncio", "msgspec"}
found = {"file": gpuspawner.__file__, "loaded": sorted(LEFT_OUT & set(sys.modules))}
import kubespawner.spawner
stock = {*sys.modules, *sys.stdlib_module_names}
import gpuspawner.spawner
found["added"] = sorted({name.partition(".")[0] for name in sys.modules} - stock)
from jupyterhub.app import JupyterHub
from traitlets.config import Config
named = JupyterHub(config=Config(JupyterHub={"spawner_class": "gpuspawner"})).spawner_class
found["named"] = f"{named.__module__} {named.__name__}"
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def imported(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process finds that imports our package from the wheel, not the work tree."""
    folder = tmp_path_factory.mktemp("elsewhere")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST")
    }
    environment |= {"PYTHONPATH": str(wheel), "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_one_wheel_fits_every_platform(wheel: Path):
    assert wheel.name.endswith("-py3-none-any.whl")


def test_it_fits_into_a_config_map_and_leaves_a_tenth_of_it(wheel: Path):
    """helm-values/install-from-configmap.yaml installs it from there."""
    assert wheel.stat().st_size < 0.9 * CONFIG_MAP


def test_it_holds_the_package_and_nothing_else(wheel: Path):
    top = {name.split("/")[0] for name in ZipFile(wheel).namelist()}

    assert top == {"gpuspawner", wheel.name.rsplit("-", 3)[0] + ".dist-info"}


def test_every_file_of_the_package_is_in_it(wheel: Path):
    files = {it for it in project_files() if it.startswith("gpuspawner/")}
    values = {f"gpuspawner/{it}" for it in project_files() if it.startswith("helm-values/")}

    # Translators work in the source; a hub reads only the compiled catalogues. A link leads to the
    # values.
    shipped = {it for it in files if not it.endswith((".po", ".pot", "/helm-values"))}
    assert shipped | values <= set(ZipFile(wheel).namelist())


def test_the_values_are_in_it_without_symbolic_links(wheel: Path, tmp_path: Path):
    """Git on Windows, and pip with a zip archive, make a text file of a link."""
    copy_project(tmp_path)
    link = tmp_path / "gpuspawner" / "helm-values"
    link.unlink()
    link.write_text("../helm-values")
    built = ProjectBuilder(tmp_path).build("wheel", tmp_path / "dist")

    assert set(ZipFile(built).namelist()) == set(ZipFile(wheel).namelist())


def test_types_are_shipped(wheel: Path):
    assert "gpuspawner/py.typed" in ZipFile(wheel).namelist()


def test_it_imports_from_the_wheel_without_a_cluster(wheel: Path, imported: dict[str, Any]):
    assert imported["file"].startswith(str(wheel))


def test_jupyterhub_finds_the_spawner_by_its_short_name(imported: dict[str, Any]):
    assert imported["named"] == "gpuspawner.spawner GPUSpawner"


def test_importing_it_loads_neither_hub_nor_client(imported: dict[str, Any]):
    """`python -m gpuspawner.nvml` runs in users' images, which don't have these packages."""
    assert imported["loaded"] == []


def test_the_spawner_adds_two_packages_to_the_import_of_kubespawner(imported: dict[str, Any]):
    """JupyterHub imports every registered spawner for `--help-all`."""
    assert imported["added"] == ["msgspec", "regex"]

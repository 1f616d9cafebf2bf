"""The wheel that an administrator installs."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PathDistribution
from pathlib import Path
from zipfile import Path as ZipPath
from zipfile import ZipFile

import pytest

CONFIG_MAP = 1024 * 1024
"""What a ConfigMap holds, in bytes."""
MSGSPEC = 256 * 1024
"""More than a wheel of msgspec has, in bytes.

helm-values/install-from-configmap.yaml puts it in the same ConfigMap.
"""


@pytest.fixture
def metadata(wheel: Path) -> PathDistribution:
    (folder,) = (item for item in ZipPath(wheel).iterdir() if item.name.endswith(".dist-info"))
    return PathDistribution(folder)


def run(wheel: Path, program: str, folder: Path) -> str:
    """Return the output of a program that imports our package from the wheel, not the work tree."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST")
    }
    environment |= {"PYTHONPATH": str(wheel), "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_one_wheel_fits_every_platform(wheel: Path):
    assert wheel.name.endswith("-py3-none-any.whl")


def test_it_fits_into_a_config_map_with_msgspec(wheel: Path):
    assert wheel.stat().st_size < CONFIG_MAP - MSGSPEC


def test_it_holds_the_package_and_nothing_else(wheel: Path):
    top = {name.split("/")[0] for name in ZipFile(wheel).namelist()}

    assert top == {"gpuspawner", wheel.name.rsplit("-", 3)[0] + ".dist-info"}


def test_every_file_of_the_package_is_in_it(wheel: Path):
    root = Path(__file__).parents[2]
    tracked = subprocess.run(
        ["git", "ls-files", "gpuspawner"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split()

    # Translators work in the source; a hub reads only the compiled catalogues.
    shipped = set(tracked) - {"gpuspawner/locale/gpuspawner.pot"}
    assert shipped <= set(ZipFile(wheel).namelist())


def test_types_are_shipped(wheel: Path):
    assert "gpuspawner/py.typed" in ZipFile(wheel).namelist()


def test_the_licence_is_shipped(metadata: PathDistribution):
    assert metadata.metadata["License"] == "BSD-3-Clause"
    assert metadata.metadata.get_all("License-File") == ["LICENSE"]


def test_jupyterhub_finds_the_spawner_by_its_short_name(wheel: Path, tmp_path: Path):
    program = (
        "from jupyterhub.app import JupyterHub;"
        "from traitlets.config import Config;"
        "hub = JupyterHub(config=Config(JupyterHub={'spawner_class': 'gpuspawner'}));"
        "print(hub.spawner_class.__module__, hub.spawner_class.__name__)"
    )

    assert run(wheel, program, tmp_path) == "gpuspawner.spawner GPUSpawner"


def test_it_imports_from_the_wheel_without_a_cluster(wheel: Path, tmp_path: Path):
    program = "import gpuspawner; print(gpuspawner.__file__); gpuspawner.GPUSpawner"

    assert run(wheel, program, tmp_path).startswith(str(wheel))


def test_importing_it_loads_neither_hub_nor_client(wheel: Path, tmp_path: Path):
    """`python -m gpuspawner.nvml` runs in users' images, which don't have these packages."""
    program = (
        "import sys, gpuspawner, gpuspawner.nvml;"
        "print(*sorted({'jupyterhub', 'kubespawner', 'kubernetes_asyncio', 'msgspec'}"
        " & set(sys.modules)))"
    )

    assert run(wheel, program, tmp_path) == ""


def test_the_spawner_adds_two_packages_to_the_import_of_kubespawner(wheel: Path, tmp_path: Path):
    """JupyterHub imports every registered spawner for `--help-all`."""
    program = (
        "import sys, kubespawner.spawner; stock = {*sys.modules, *sys.stdlib_module_names};"
        "import gpuspawner.spawner;"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} - stock))"
    )

    assert run(wheel, program, tmp_path) == "gpuspawner msgspec regex"

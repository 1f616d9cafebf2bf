from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from zipfile import Path as ZipPath

import pytest
from build import ProjectBuilder

ROOT = Path(__file__).parents[2]


def project_files() -> list[str]:
    """Return the paths of all files of the project, also if this is an unpacked sdist."""
    if not (ROOT / ".git").exists():
        return (ROOT / "gpuspawner.egg-info" / "SOURCES.txt").read_text().splitlines()
    command = ["git", "ls-files"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for path in listed.splitlines() if (ROOT / path).exists()]


def copy_project(folder: Path) -> None:
    """Copy all files of the project, and links as links."""
    for path in project_files():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path, follow_symlinks=False)


@dataclass(frozen=True)
class Built:
    sdist: Path
    wheel: Path

    @classmethod
    def in_folder(cls, folder: Path) -> Built:
        """Build both as `python -m build` does: the sdist, and the wheel from it.

        Setuptools leaves build/ behind and packs stale files from it, so this starts with a copy.
        """
        copy, unpacked, dist = folder / "copy", folder / "unpacked", folder / "dist"
        copy_project(copy)
        sdist = Path(ProjectBuilder(copy).build("sdist", dist))
        shutil.unpack_archive(sdist, unpacked, filter="data")
        [source] = unpacked.iterdir()
        return cls(sdist, Path(ProjectBuilder(source).build("wheel", dist)))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The sdist and the wheel of this work tree, dated at one moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        return Built.in_folder(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="session")
def wheel(built: Built) -> Path:
    return built.wheel


@pytest.fixture
def metadata(wheel: Path) -> Distribution:
    (folder,) = (item for item in ZipPath(wheel).iterdir() if item.name.endswith(".dist-info"))
    return PathDistribution(folder)

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from build import ProjectBuilder

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this work tree, built as an installer builds it.

    It is built from a copy, because setuptools leaves build/ behind and packs stale files from it.
    """
    source = tmp_path_factory.mktemp("source")
    for name in ("LICENSE", "README.md", "pyproject.toml", "setup.cfg"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(
        ROOT / "gpuspawner", source / "gpuspawner", ignore=shutil.ignore_patterns("__pycache__")
    )
    return Path(ProjectBuilder(source).build("wheel", tmp_path_factory.mktemp("dist")))

"""The reference of the HTTP addresses, compared with those that the hub serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuspawner.form.view_model import STATIC
from gpuspawner.web import handlers

PAGE = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()
FOLDERS = [path.split("/")[2] for path, *_ in handlers._HANDLERS]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_address_is_in_the_reference(folder: str):
    assert f" /hub/gpuspawner/{folder}/" in PAGE


@pytest.mark.parametrize("name", [path.name for path in STATIC.iterdir()])
def test_every_static_file_is_in_the_reference(name: str):
    assert f"`{name}`" in PAGE

"""Every test belongs to a session of nox, so that `make test` or `make live` runs it."""

from __future__ import annotations

import re
from pathlib import Path

MARK = "mark." + "each_hub"  # in two parts, as this file has no such test
ROOT = Path(__file__).parents[3]


def test_a_session_runs_each_folder_with_tests() -> None:
    sessions = (ROOT / "noxfile.py").read_text()
    folders = {path.relative_to(ROOT).parts[1] for path in ROOT.glob("tests/*/**/test_*.py")}

    assert "unit" in folders
    assert {name for name in folders if f'"tests/{name}"' not in sessions} == set()


def test_the_newest_hub_runs_each_file_with_tests_for_each_hub() -> None:
    sessions = (ROOT / "noxfile.py").read_text()
    (listed,) = re.findall(r"EACH_HUB = \((.*?)\)", sessions, re.DOTALL)
    places = [ROOT / name for name in re.findall(r'"(.+)"', listed)]
    marked = [path for path in ROOT.glob("tests/**/*.py") if MARK in path.read_text()]

    assert marked
    assert [it for it in marked if not any(it.is_relative_to(place) for place in places)] == []

"""nox's sessions run every test, and the workflows on GitHub all of the project's commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.nightly import PARTS

ROOT = Path(__file__).parents[3]
NOXFILE = (ROOT / "noxfile.py").read_text()
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def matrix(workflow: str, job: str) -> dict[str, list[str]]:
    read: dict[str, Any] = yaml.safe_load((ROOT / f".github/workflows/{workflow}.yml").read_text())
    found: dict[str, list[str]] = read["jobs"][job]["strategy"]["matrix"]
    return found


def test_a_session_runs_each_folder_with_tests() -> None:
    folders = {path.relative_to(ROOT).parts[1] for path in ROOT.glob("tests/*/**/test_*.py")}

    assert "unit" in folders
    assert {name for name in folders if f'"tests/{name}"' not in NOXFILE} == set()


def test_each_step_of_make_test_has_a_job() -> None:
    [listed] = re.findall(r"^nox\.options\.sessions = \[(.+)\]", NOXFILE, re.MULTILINE)
    [pythons] = re.findall(r"^PYTHONS = \[(.+)\]", NOXFILE, re.MULTILINE)
    sessions = set(re.findall(r'"(.+?)"', listed)) - {"unit"}
    sessions |= {f"unit-{it}" for it in re.findall(r'"(.+?)"', pythons)}

    assert set(matrix("test", "test")["session"]) == sessions


def test_each_part_of_the_night_has_a_job() -> None:
    assert matrix("nightly", "part")["part"] == list(PARTS)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_nobody_can_change_what_an_action_does(path: Path) -> None:
    """A tag can be moved; a commit can't."""
    used = re.findall(r"uses: (\S+)", path.read_text())

    assert used
    assert [it for it in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", it)] == []

"""Every test belongs to a session of nox, so that `make test` or `make live` runs it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_a_session_runs_each_folder_with_tests() -> None:
    sessions = (ROOT / "noxfile.py").read_text()
    folders = {path.relative_to(ROOT).parts[1] for path in ROOT.glob("tests/*/**/test_*.py")}

    assert "unit" in folders
    assert {name for name in folders if f'"tests/{name}"' not in sessions} == set()

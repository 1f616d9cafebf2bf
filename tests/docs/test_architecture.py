"""The architecture page beside the package."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_room_has_a_line():
    page = (ROOT / "docs/contributing/architecture.md").read_text()
    rooms = {
        path.stem
        for path in (ROOT / "gpuspawner").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__"}

    assert {room for room in rooms if page.count(f"\n| `{room}` |") != 1} == set()

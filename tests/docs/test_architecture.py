"""The architecture page, compared with the package."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_module_is_on_the_page():
    page = (ROOT / "docs/contributing/architecture.md").read_text()
    modules = {
        path.stem
        for path in (ROOT / "gpuspawner").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__"}

    assert {name for name in modules if page.count(f"\n| `{name}` |") != 1} == set()

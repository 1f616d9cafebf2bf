"""The modules and folders that the documentation names, compared with the project's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gpuspawner"
PAGE = (ROOT / "docs/contributing/architecture.md").read_text()
SCHEDULING = (ROOT / "docs/reference/scheduling.md").read_text()


def modules(folder: Path) -> set[str]:
    """Return the modules and packages in a folder."""
    return {
        path.stem
        for path in folder.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    } - {"__init__"}


def section(page: str, heading: str) -> str:
    """Return the part of a page below a heading, up to the next heading."""
    return re.split(r"^#", page.split(f"# {heading}\n")[1], flags=re.MULTILINE)[0]


def column(table: str, number: int) -> Iterator[str]:
    """Yield the names in one column of a table."""
    for row in re.findall(r"^\| .*$", table, re.MULTILINE):
        yield from re.findall(r"`([\w/]+)`", row.split(" | ")[number])


def test_every_module_is_on_the_page():
    assert {name for name in modules(PACKAGE) if PAGE.count(f"\n| `{name}` |") != 1} == set()


@pytest.mark.parametrize(
    ("heading", "folder"),
    [
        ("Modules and packages", PACKAGE),
        ("What the hub calls: `gates`", PACKAGE / "gates"),
        ("One start: `start`", PACKAGE / "start"),
        ("What decides: `preflight`", PACKAGE / "preflight"),
        ("What is promised: `reservations`", PACKAGE / "reservations"),
        ("After the pod is created: `launch`", PACKAGE / "launch"),
        ("What a pod says: `troubles`", PACKAGE / "troubles"),
        ("The line", PACKAGE / "line"),
    ],
    ids=[
        "the package",
        "gates",
        "start",
        "preflight",
        "reservations",
        "launch",
        "troubles",
        "line",
    ],
)
def test_a_table_names_all_modules_and_no_others(heading: str, folder: Path):
    named = {name.rstrip("/") for name in column(section(PAGE, heading), 0)}

    assert named == modules(folder)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(\w+/\w+\.py)`", PAGE))))
def test_every_path_on_the_page_exists(path: str):
    assert (PACKAGE / path).is_file()


def test_the_page_names_all_folders_of_tests_and_no_others():
    folders = {it.name for it in (ROOT / "tests").iterdir() if it.is_dir()} - {"__pycache__"}

    assert set(column(section(PAGE, "Tests"), 0)) == {f"tests/{name}" for name in folders}


def test_the_rules_name_modules_that_exist():
    named = set(column(section(SCHEDULING, "The rules"), 1))

    assert named
    assert named - modules(PACKAGE / "scheduling") == set()

"""The rooms, paths and folders that the documentation names, compared with the project's."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "gpuspawner"
PAGE = (ROOT / "docs/contributing/architecture.md").read_text()
IN_DEPTH = (ROOT / "docs/contributing/in-depth.md").read_text()
SCHEDULING = (ROOT / "docs/reference/scheduling.md").read_text()
ROOMS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))


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


def layers() -> list[str]:
    """Return the layers of the import contract, the highest first."""
    contracts = ConfigParser()
    contracts.read(ROOT / "setup.cfg")
    return contracts["importlinter:contract:layers"]["layers"].split("\n")[1:]


def words_of(room: str) -> str:
    """Return what the `__init__.py` of a room says."""
    return ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text())) or ""


def test_the_picture_has_the_layers_of_the_import_contract_in_their_order():
    picture = section(PAGE, "The rooms, and two ways through them").split("```")[1]

    assert re.findall(r"^ [│▼ ] {3}(\w+(?: \| \w+)*)", picture, re.MULTILINE) == layers()


def test_a_sentence_for_each_room_is_on_the_page():
    assert sorted(column(section(PAGE, "What each room is for"), 0)) == ROOMS


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_says_in_at_most_ten_lines_what_it_is_for(room: str):
    assert 1 <= len(words_of(room).splitlines()) <= 10


@pytest.mark.parametrize("room", [it for it in ROOMS if it != "scheduling"])
def test_each_room_says_with_which_of_its_modules_to_begin(room: str):
    _, _, advice = " ".join(words_of(room).split()).partition("Begin with ")

    assert set(re.findall(r"`(\w+)`", advice.partition(";")[0])) & modules(PACKAGE / room)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(\w+/\w+\.py)`", PAGE + IN_DEPTH))))
def test_every_path_on_the_pages_exists(path: str):
    assert (PACKAGE / path).is_file()


def test_the_page_names_all_folders_of_tests_and_no_others():
    folders = {it.name for it in (ROOT / "tests").iterdir() if it.is_dir()} - {"__pycache__"}

    assert set(column(section(IN_DEPTH, "Tests"), 0)) == {f"tests/{name}" for name in folders}


def test_the_rules_name_modules_that_exist():
    named = set(column(section(SCHEDULING, "The rules"), 1))

    assert named
    assert named - modules(PACKAGE / "scheduling") == set()

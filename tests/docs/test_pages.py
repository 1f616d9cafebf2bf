"""Checks of every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuspawner.traits import OF_ONE_SERVER

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*/*.md")]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_has_a_placeholder(page: Path):
    assert re.findall(r"@[A-Z]+@|TODO|FIXME|XXX", page.read_text()) == []


def test_the_traits_that_can_be_set_for_one_server_are_those_that_code_reads_so():
    told = (ROOT / "docs/reference/configuration.md").read_text()
    told = told.partition("can set these for one server: ")[2].partition(".\n")[0]
    code = "".join(it.read_text() for it in (ROOT / "gpuspawner").rglob("*.py"))

    assert set(re.findall(r"`(\w+)`", told)) == set(OF_ONE_SERVER)
    assert set(re.findall(r'setting\(\w*spawner, "(\w+)"\)', code)) <= set(OF_ONE_SERVER)

"""The tables that the nightly part `newest` writes."""

from __future__ import annotations

import re

import pytest

from tools.compatibility import MODULES, NONE, PACKAGES, PAGE, ROOT, table, with_hub, with_table

TEXT = """Before.
<!-- hubs: begin -->
| JupyterHub | Python |
| --- | --- |
| 5.5.4 | 3.13.0 |
<!-- hubs: end -->
After.
"""


@pytest.mark.parametrize(("name", "columns"), [("hubs", len(PACKAGES) + 1), ("programs", 3)])
def test_each_row_of_the_page_has_a_cell_for_each_column(name: str, columns: int) -> None:
    rows = table(PAGE.read_text(), name)

    assert rows
    assert {len(it) for it in rows} == {columns}
    cells = [cell for row in rows for cell in row[name == "programs" :]]
    assert all(cell == NONE or re.fullmatch(r"\d+(\.\d+)+", cell) for cell in cells)


def test_the_page_has_both_hubs_and_all_programs() -> None:
    text = PAGE.read_text()

    assert [row[0].partition(".")[0] for row in table(text, "hubs")] == ["5", "6"]
    assert [row[0] for row in table(text, "programs")] == [*MODULES]


def test_a_run_replaces_the_row_of_its_own_hub_only() -> None:
    rows = table(TEXT, "hubs")

    added = with_hub(rows, ["6.1.1", "3.13.0"])
    replaced = with_hub(added, ["5.5.5", "3.14.0"])

    assert added == [["5.5.4", "3.13.0"], ["6.1.1", "3.13.0"]]
    assert replaced == [["5.5.5", "3.14.0"], ["6.1.1", "3.13.0"]]
    written = with_table(TEXT, "hubs", replaced)
    assert table(written, "hubs") == replaced
    assert written.startswith("Before.\n<!-- hubs: begin -->\n| JupyterHub | Python |\n| --- ")
    assert written.endswith("| 6.1.1 | 3.13.0 |\n<!-- hubs: end -->\nAfter.\n")


def test_the_page_names_the_hubs_of_the_noxfile() -> None:
    noxfile = (ROOT / "noxfile.py").read_text()
    pinned = re.findall(r'"jupyterhub==(.+?)", "jupyterhub-kubespawner==(.+?)"', noxfile)

    assert len(pinned) == 3
    assert all(it in PAGE.read_text().partition("##")[0] for pair in pinned for it in pair)

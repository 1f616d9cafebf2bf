"""The doctor's findings that the documentation lists, compared with those in the code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/cli.md").read_text()
CODE = "".join(path.read_text() for path in (ROOT / "gpuspawner/doctor").rglob("*.py"))


def test_every_finding_is_on_the_page():
    made = re.findall(r'(?:error|warning|fine|Cause|make|Finding)\(\s*"([a-z-]+)"', CODE)

    assert {name for name in made if f"`{name}`" not in PAGE} == set()
    assert len(set(made)) > 25

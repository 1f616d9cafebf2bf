"""The examples of configuration in the documentation: a hub starts with each of them alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from traitlets.config import Config

from gpuspawner import configuration

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*/*.md"))]
EXAMPLES = {
    f"{page.stem}-{number}": code
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    )
    if "c.GPUSpawner" in code
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_hub_starts_with_each_example_alone(example: str) -> None:
    c = Config()

    exec(EXAMPLES[example], {"c": c, "get_config": lambda: c})

    configuration.check(c)

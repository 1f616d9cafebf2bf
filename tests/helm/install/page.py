"""The commands of docs/how-to/zero-to-jupyterhub.md, as an administrator copies them."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "zero-to-jupyterhub.md"

_SECTION = re.compile(r"^###? (.+)$", re.MULTILINE)
_CONTINUED = re.compile(r"\\\n\s*")
_CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(section: str) -> list[str]:
    """Return the commands of the section with this heading."""
    _, *parts = _SECTION.split(PAGE.read_text())
    text = dict(zip(parts[::2], parts[1::2], strict=True))[section]
    return [
        line
        for block in _CONSOLE.findall(text)
        for line in _CONTINUED.sub("", block).splitlines()
        if line.startswith("$ ")
    ]

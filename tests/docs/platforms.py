"""The how-tos for clouds and for parts of GPUs, and the YAML in them."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from tests.helm.chart import Values

ROOT = Path(__file__).parents[2]
NAMES = ("gke", "eks", "aks", "openshift", "gpu-operator", "mig", "time-slices")
PAGES = {name: (ROOT / f"docs/how-to/{name}.md").read_text() for name in NAMES}
BLOCKS: dict[str, list[Values]] = {
    name: [yaml.safe_load(it) for it in re.findall(r"^```yaml\n(.*?)^```", page, re.S | re.M)]
    for name, page in PAGES.items()
}
OF_THE_CHART = {
    f"{name}-{number}": block
    for name, blocks in BLOCKS.items()
    for number, block in enumerate(blocks)
    if "kind" not in block
}
"""Values for the Zero-to-JupyterHub chart."""


def objects(name: str, kind: str) -> list[Values]:
    """Return the objects of a kind that a page has."""
    return [it for it in BLOCKS[name] if it.get("kind") == kind]

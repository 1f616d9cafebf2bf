"""A name of a class or a type means one thing in the whole package, as CONTRIBUTING.md says."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "gpuspawner"
TWICE = {"Page"}
"""A page that a user sees, and a page of an API server's list: both are called so."""


def public_names(module: Path) -> Iterator[str]:
    """Yield the classes and the aliases of types that a module defines for others."""
    for node in ast.parse(module.read_text()).body:
        match node:
            case (
                ast.ClassDef(name=name)
                | ast.Assign(targets=[ast.Name(name)], value=ast.Subscript() | ast.BinOp())
                | ast.AnnAssign(
                    target=ast.Name(name), annotation=ast.Name("TypeAlias"), value=ast.expr()
                )
            ) if name[0].isupper() and not name.isupper():
                yield name


def test_no_two_classes_or_types_of_the_package_have_the_same_name():
    found = Counter(name for it in PACKAGE.rglob("*.py") for name in public_names(it))

    assert {name for name, count in found.items() if count > 1} <= TWICE

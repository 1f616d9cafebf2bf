"""A name of a class or a type means one thing in the whole package, as CONTRIBUTING.md says."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "gpuspawner"
TWICE = {"Page"}
"""A page that a user sees, and a page of an API server's list: both are called so."""
OF_A_MODULE = re.compile(r"(?<!`)`([a-z_]+)\.([A-Z]\w*)[^`]*`(?!`)")
"""A constant, class or type of another module, as docstrings and comments quote it."""
OF_OTHERS = {"strconv"}
"""Packages of Kubernetes' own sources."""


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


def test_what_a_docstring_quotes_of_a_module_is_in_that_module():
    quoted = {it for path in PACKAGE.rglob("*.py") for it in OF_A_MODULE.findall(path.read_text())}
    defined = {
        (path.stem, name.id if isinstance(name, ast.Name) else name.name)
        for path in PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        for name in ast.walk(node)
        if isinstance(name, ast.ClassDef)
        or (isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store))
    }

    assert {it for it in quoted if it[0] not in OF_OTHERS} <= defined

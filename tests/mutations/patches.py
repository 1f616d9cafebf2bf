"""The patches of this folder, each of which breaks the package in one place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
_BROKEN, _SEEN_BY = "Broken: ", "Seen by: "
_TARGET = re.compile(r"^\+\+\+ b/(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Mutation:
    """A wrong edit, and the tests that must fail with it.

    Attributes:
        name: The name of its file, without the suffix.
        broken: What it does, in one sentence.
        tests: pytest's node ids or paths; each must fail.
        files: The files of the package that it edits.
        patch: What `git apply` reads.
    """

    name: str
    broken: str
    tests: tuple[str, ...]
    files: tuple[str, ...]
    patch: str


def read(name: str, text: str) -> Mutation:
    """Read the text of a patch.

    Raises:
        ValueError: It isn't written as the others are, or it edits something else than the package.
    """
    head, start, diff = text.partition("diff --git ")
    lines = head.splitlines()
    if len(lines) != 2 or not lines[0].startswith(_BROKEN) or not lines[1].startswith(_SEEN_BY):
        raise ValueError(f"{name}: before the diff stand two lines, {_BROKEN!r} and {_SEEN_BY!r}")
    broken, tests = lines[0].removeprefix(_BROKEN), lines[1].removeprefix(_SEEN_BY).split()
    if not broken or not tests:
        raise ValueError(f"{name}: it says what is broken, and names a test that sees it")
    files = tuple(_TARGET.findall(diff))
    if not files or not all(path.startswith("gpuspawner/") for path in files):
        raise ValueError(f"{name}: it edits the package, and nothing else")
    return Mutation(name, broken, tuple(tests), files, start + diff)


def all_mutations() -> list[Mutation]:
    """Read all patches, by name."""
    return [read(it.stem, it.read_text()) for it in sorted(FOLDER.glob("*.patch"))]

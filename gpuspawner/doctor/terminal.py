"""Prints to a terminal, where names from the cluster and its users must do no harm."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

from gpuspawner.kube.quoting import one_line

_LONGEST = 1000
_WIDTH = 110
_NARROWEST = 40

_answers: TextIO | None = None


@contextmanager
def reserved() -> Iterator[None]:
    """Keep the output to the answers, so that programs can read it.

    The configuration file is a program too; what it prints goes where errors go.
    """
    global _answers  # noqa: PLW0603, a process has one output
    _answers = sys.stdout
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _answers = None


def _output() -> TextIO:
    return _answers or sys.stdout


RED, YELLOW, GREEN = "31", "33", "32"
"""Colours with a meaning, as terminals number them; the words say the same without them."""


def say(text: str = "") -> None:
    """Print one line; control characters become spaces."""
    kept = text.lstrip(" ")
    indent = text[: len(text) - len(kept)]
    _output().write(f"{indent}{one_line(kept, _LONGEST)}\n")


def say_json(value: object) -> None:
    """Print a value for programs, in ASCII."""
    _output().write(f"{json.dumps(value, indent=2)}\n")


def pass_on(text: str) -> None:
    """Print a text of ours as it is."""
    _output().write(text)


def complain(text: str) -> None:
    """Print one line where errors go."""
    sys.stderr.write(f"{one_line(text, _LONGEST)}\n")


def say_painted(word: str, colour: str, text: str, advice: str) -> None:
    """Print a text beside a word of ours, in a colour if a person reads it; what to do is below."""
    indent = " " * (len(word) + 2)
    width = max(_NARROWEST, min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDTH))
    lines = textwrap.wrap(one_line(text, _LONGEST), width - len(indent), break_on_hyphens=False)
    if advice:
        lines += textwrap.wrap(
            f"→ {one_line(advice, _LONGEST)}",
            width - len(indent),
            subsequent_indent="  ",
            break_on_hyphens=False,
        )
    first, *rest = lines
    if _output().isatty() and not os.environ.get("NO_COLOR"):
        word = f"\x1b[{colour}m{word}\x1b[0m"
    _output().write(f"{word}  {first}\n")
    _output().writelines(f"{indent}{line}\n" for line in rest)


def table(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows in columns; numbers are aligned to the right, and the last column may be cut."""
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    numbers = [
        all(row[at].isdigit() or row[at] in ("", "-") for row in cells) for at in range(len(titles))
    ]
    limit = shutil.get_terminal_size((120, 24)).columns
    for row in (titles, *cells):
        padded = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, numbers, strict=True)
        )
        line = "  ".join(padded).rstrip()
        cut = line if len(line) <= limit or not _output().isatty() else f"{line[: limit - 1]}…"
        _output().write(f"{cut}\n")

"""Break the package in one place after the other: `python -m tests.mutations [NAME ...]`.

Each patch of this folder is a wrong edit, and names the tests that must fail with it. It is applied
to a copy of the checkout's tracked files, so the checkout stays as it is. One copy serves for many,
because Python compiles all of it only once.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from tests.mutations.patches import Mutation, all_mutations

ROOT = Path(__file__).parents[2]
AT_ONCE = 2
FAILED = 1
"""pytest's exit status if tests failed; others mean that it ran none, or not to the end."""


class Outcome(StrEnum):
    """What became of a mutation."""

    RED = "red"
    SURVIVES = "SURVIVES"
    DOES_NOT_APPLY = "DOES NOT APPLY"


def main() -> int:
    """Try the mutations, and return 1 unless tests see all of them."""
    chosen = _chosen()
    with ExitStack() as stack:
        copies: SimpleQueue[Path] = SimpleQueue()
        for _ in range(AT_ONCE):
            copies.put(copy := stack.enter_context(_copy()))
        unbroken = _pytest(copy, *sorted({test for it in chosen for test in it.tests}))
        if unbroken.returncode:
            print(unbroken.stdout, "The tests fail without a mutation, too.", sep="")
            return 1
        with ThreadPoolExecutor(AT_ONCE) as pool:
            found = Counter(pool.map(partial(_tell, copies), chosen))
    red, survive, rest = (found[it] for it in Outcome)
    print(f"{red} red, {survive} survive, {rest} don't apply")
    return 0 if red == len(chosen) else 1


def _chosen() -> list[Mutation]:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of patches; without any, all")
    names = parser.parse_args().names
    known = {it.name: it for it in all_mutations()}
    unknown = sorted(set(names) - set(known))
    if unknown:
        parser.error(f"there is no patch {', '.join(unknown)}")
    return [known[it] for it in names or known]


def _tell(copies: SimpleQueue[Path], mutation: Mutation) -> Outcome:
    began, copy = time.monotonic(), copies.get()
    try:
        outcome = _try(copy, mutation)
    finally:
        copies.put(copy)
    seconds = time.monotonic() - began
    print(f"{outcome:14} {mutation.name} ({seconds:.1f} s): {mutation.broken}", flush=True)
    return outcome


def _try(copy: Path, mutation: Mutation) -> Outcome:
    applied = subprocess.run(
        ["git", "apply"],
        cwd=copy,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(copy.parent)},
        input=mutation.patch,
        text=True,
        check=False,
    )
    if applied.returncode:  # it has changed nothing
        return Outcome.DOES_NOT_APPLY
    fails = all(_pytest(copy, test).returncode == FAILED for test in mutation.tests)
    for name in mutation.files:
        shutil.copy2(ROOT / name, copy / name)
    return Outcome.RED if fails else Outcome.SURVIVES


@contextmanager
def _copy() -> Iterator[Path]:
    """Copy the tracked files to a folder of their own."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).exists():  # else, it has been deleted, and that isn't committed yet
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
        yield folder


def _pytest(copy: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests of a copy with the copy's package, not with the one that is installed."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())

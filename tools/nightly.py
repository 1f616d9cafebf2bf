"""Runs everything, part by part, and says at the end what each came to: `make nightly`.

A run that was stopped continues: parts that have passed on this commit run again only if they are
named, as in `make nightly PARTS="race soak"`. If there are changes that aren't committed, all parts
run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / ".nox" / "nightly.json"

# Each is a session of noxfile.py, with what stands after `--`; the longest come last.
PARTS: dict[str, tuple[str, ...]] = {
    "lint": (),
    "docs": (),
    "unit": (),
    "mutations": (),
    "oldest_hub": (),
    "newest_hub": (),
    "cluster": (),
    "main_branches": (),
    "kubespawner": (),
    "chart": (),
    "fuzz": ("--count", "20000"),
    "attack": (),
    "live": (),
    "soak": (),
    "race": ("60", "1"),
    "newest": (),  # at the end, because it may change a page, and then no run is continued
}


@dataclass(frozen=True)
class Result:
    """What a part came to.

    Attributes:
        outcome: ``success``, ``skipped`` or ``failed``.
        seconds: How long it took, in seconds.
        why: Why it, or a session of it, was skipped, or ``""``.
    """

    outcome: str
    seconds: float
    why: str = ""


def main() -> int:
    """Run the parts and print the table; return 1 if one has failed."""
    parser = argparse.ArgumentParser(prog="make nightly", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    named: list[str] = parser.parse_args().parts
    if unknown := [part for part in named if part not in PARTS]:
        parser.error(f"no such part: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    commit = _commit()
    results = _earlier(commit)
    for part in named or PARTS:
        if not named and part in results and results[part].outcome == "success":
            print(f"{part}: passed before, on this commit", flush=True)
            continue
        results[part] = _run(part)
        RESULTS.write_text(json.dumps({commit: {it: asdict(results[it]) for it in results}}))
    print(f"\nThe night of {commit}:")
    for part in PARTS:
        print(_line(part, results.get(part)))
    return 1 if any(results[part].outcome == "failed" for part in named or PARTS) else 0


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40"]
    return subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


def _earlier(commit: str) -> dict[str, Result]:
    if commit.endswith("-dirty") or not RESULTS.exists():
        return {}
    found = json.loads(RESULTS.read_text()).get(commit, {})
    return {part: Result(**result) for part, result in found.items()}


def _run(part: str) -> Result:
    print(f"\n{part}:", flush=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "nox", "--session", part, "--report", str(report)]
        words = ("--", *PARTS[part]) if PARTS[part] else ()
        environment = {**os.environ, "GPUSPAWNER_NIGHT": "1"}
        done = subprocess.run([*command, *words], cwd=ROOT, env=environment, check=False)
        seconds = time.monotonic() - started
        if done.returncode:
            return Result("failed", seconds)
        sessions = json.loads(report.read_text())["sessions"]
    # Where one part is several sessions, some may be skipped: the machine lacks their Python.
    outcomes = {session["result"] for session in sessions}
    why = "; ".join(dict.fromkeys(it["reason"] for it in sessions if it["reason"]))
    return Result("success" if "success" in outcomes else "skipped", seconds, why)


def _line(part: str, result: Result | None) -> str:
    if result is None:
        return f"  {part:14} not run"
    why = f": {result.why}" if result.why else ""
    return f"  {part:14} {result.seconds:6.0f} s  {result.outcome}{why}"


if __name__ == "__main__":
    sys.exit(main())

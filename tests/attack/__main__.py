"""Attacks hubs, and measures what others have to suffer from that: `make attack`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from secrets import randbelow

from tests.attack import addresses, database, limits
from tests.attack.attack import LOOPS, Attack, HarmedError, Report
from tests.attack.stage import own_hub
from tests.hub.running import API_TOKEN

MOST_TIMES_AS_LONG = 2.0
PARTS = ("requests", "addresses", "limits", "database")


def main() -> int:
    """Attack hubs, print the outcome, and return 1 if another user was harmed."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--url", help="where a hub is; without it one is started for the attack")
    parser.add_argument("--token", help="of an administrator")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=randbelow(10**9))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    if arguments.url:
        attack = Attack(arguments.url, arguments.token)
        return _judge(attack.run(arguments.requests, arguments.seed), attack.lives())
    harmed = 0
    with tempfile.TemporaryDirectory() as folder:
        if "requests" in arguments.parts:
            harmed |= _requests(Path(folder), arguments.requests, arguments.seed)
        if "addresses" in arguments.parts:
            (Path(folder) / "addresses").mkdir()
            times = addresses.ratios(Path(folder) / "addresses")
            harmed |= max(times.values()) > MOST_TIMES_AS_LONG
        if "limits" in arguments.parts:
            harmed |= _limits(Path(folder), arguments.seed)
        if "database" in arguments.parts:
            harmed |= not database.survives(Path(folder))
    return int(harmed)


def _requests(folder: Path, count: int, seed: int) -> int:
    """Send hostile requests to a hub while another user starts a server."""
    (folder / "requests").mkdir()
    with own_hub(folder / "requests") as hub:
        attack = Attack(hub.url, API_TOKEN)
        try:
            report = attack.run(count, seed)
        except HarmedError:
            print(*(line for line in hub.log.splitlines() if "alice" in line), sep="\n")
            raise
        counted = hub.log.count("consecutive spawn")
        print(f"seed {seed}, failures that the hub counted in a row: {counted or 'none'}")
        return _judge(report, attack.lives() and not counted)


def _limits(folder: Path, seed: int) -> bool:
    """Whether an attempt to change what counts toward limits succeeds."""
    (folder / "limits").mkdir()
    succeeded = limits.attack(folder / "limits", seed)
    print("attempts on limits that succeeded:", *(succeeded or ["none"]), sep="\n  ")
    return bool(succeeded)


def _judge(report: Report, unharmed: bool) -> int:
    print("hostile starts:", dict(report.answers.most_common()))
    print(f"decisions of one user in {LOOPS} loops:", dict(report.decisions.most_common()))
    times = f"{report.usual:.2f} s before, {report.meanwhile:.2f} s meanwhile"
    print(f"another person's start: {times}, {report.ratio:.2f} times as long")
    print("the hub lives, and nothing was counted" if unharmed else "the hub was harmed")
    return 0 if unharmed and report.ratio <= MOST_TIMES_AS_LONG else 1


if __name__ == "__main__":
    sys.exit(main())

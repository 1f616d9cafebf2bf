"""Sends hostile requests to a hub and measures another user's start: `make attack`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from secrets import randbelow

from tests.attack.attack import LOOPS, Attack, HarmedError, Report
from tests.attack.stage import own_hub
from tests.hub.running import API_TOKEN

MOST_TIMES_AS_LONG = 2.0


def main() -> int:
    """Attack a hub, print the outcome, and return 1 if another user was harmed."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack", description=__doc__)
    parser.add_argument("--url", help="where a hub is; without it one is started for the attack")
    parser.add_argument("--token", help="of an administrator")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=randbelow(10**9))
    arguments = parser.parse_args()
    if arguments.url:
        attack = Attack(arguments.url, arguments.token)
        return _judge(attack.run(arguments.requests, arguments.seed), attack.lives())
    with tempfile.TemporaryDirectory() as folder, own_hub(Path(folder)) as hub:
        attack = Attack(hub.url, API_TOKEN)
        try:
            report = attack.run(arguments.requests, arguments.seed)
        except HarmedError:
            print(*(line for line in hub.log.splitlines() if "alice" in line), sep="\n")
            raise
        counted = hub.log.count("consecutive spawn")
        print(f"seed {arguments.seed}, failures that the hub counted in a row: {counted or 'none'}")
        return _judge(report, attack.lives() and not counted)


def _judge(report: Report, unharmed: bool) -> int:
    print("hostile starts:", dict(report.answers.most_common()))
    print(f"decisions of one user in {LOOPS} loops:", dict(report.decisions.most_common()))
    times = f"{report.usual:.2f} s before, {report.meanwhile:.2f} s meanwhile"
    print(f"another person's start: {times}, {report.ratio:.2f} times as long")
    print("the hub lives, and nothing was counted" if unharmed else "the hub was harmed")
    return 0 if unharmed and report.ratio <= MOST_TIMES_AS_LONG else 1


if __name__ == "__main__":
    sys.exit(main())

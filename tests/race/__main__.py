"""Runs all races and prints a table: ``python -m tests.race 60 20 6 --seed 786388467``.

The exit status is 0 if all outcomes were correct.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.race.race import RACES, Race, Result, run
from tests.race.stage import stage

_COLUMNS = (
    "accepted",
    "unchecked",
    "taken",
    "running",
    "pending",
    "refused",
    "again",
    "failed",
    "fitting",
    "reservations",
    "seconds",
)


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.race", description=__doc__)
    parser.add_argument("people", nargs="?", type=int, default=100, help="how many ask (100)")
    parser.add_argument("rounds", nargs="?", type=int, default=5, help="of each race (5)")
    parser.add_argument(
        "races",
        nargs="?",
        type=_races,
        default=list(RACES),
        help="all (the default), or places in the list of races such as 0,3: "
        + "; ".join(f"{place}: {race.name}" for place, race in enumerate(RACES)),
    )
    parser.add_argument("--seed", type=int, help="of the first round of each race (chance)")
    return parser.parse_args(words)


def _races(places: str) -> list[Race]:
    if places == "all":
        return list(RACES)
    known = {str(place): race for place, race in enumerate(RACES)}
    try:
        return [known[place] for place in places.split(",")]
    except KeyError:
        message = f"{places!r} is neither all nor places from 0 to {len(RACES) - 1}"
        raise argparse.ArgumentTypeError(message) from None


def main() -> int:
    """Run every race; return 0 if all outcomes were correct."""
    asked = parse()
    print(f"{asked.people} people, nodes of 1, 2, 4 and 8 GPUs; sums of {asked.rounds} rounds")
    print(" | ".join(["race", *_COLUMNS]), flush=True)
    wrong = False
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as set_up:
        for race in asked.races:
            seed = random.randrange(2**32) if asked.seed is None else asked.seed
            results = [run(race, set_up, asked.people, seed + i) for i in range(asked.rounds)]
            print(_row(race, results), f"(seed {seed})", flush=True)
            for number, result in enumerate(results):
                wrong |= bool(result.pending or result.fitting or result.reservations)
                for fitting in result.fitting:
                    print(f"  seed {seed + number}: {fitting}", flush=True)
    print("WRONG" if wrong else "0 accepted pods Pending, 0 refusals that would have fitted")
    return int(wrong)


def _row(race: Race, results: list[Result]) -> str:
    cells = [race.name]
    for column in _COLUMNS:
        values = [getattr(result, column) for result in results]
        total = sum(len(v) if isinstance(v, list) else v for v in values)
        cells.append(f"{total:.0f}")
    return " | ".join(cells)


if __name__ == "__main__":
    sys.exit(main())

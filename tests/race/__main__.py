"""Runs all races and prints what came of them: ``python -m tests.race 60 20 6 --seed 786388467``.

The exit status is 0 if all outcomes were correct.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.race import gpus, line, policies
from tests.race.stage import Result

_KINDS = (gpus, policies, line)
ALL = [race for kind in _KINDS for race in kind.RACES]


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.race", description=__doc__)
    people = "how many ask (100); half as many in the races for limits"
    parser.add_argument("people", nargs="?", type=int, default=100, help=people)
    parser.add_argument("rounds", nargs="?", type=int, default=5, help="of each race (5)")
    known = "; ".join(f"{place}: {race.name}" for place, race in enumerate(ALL))
    places = f"all (the default), or places in the list of races such as 0,3: {known}"
    parser.add_argument("races", nargs="?", type=_races, default=ALL, help=places)
    parser.add_argument("--seed", type=int, help="of the first round of each race (chance)")
    return parser.parse_args(words)


def _races(places: str) -> list[Any]:
    if places == "all":
        return ALL
    known = {str(place): race for place, race in enumerate(ALL)}
    try:
        return [known[place] for place in places.split(",")]
    except KeyError:
        message = f"{places!r} is neither all nor places from 0 to {len(ALL) - 1}"
        raise argparse.ArgumentTypeError(message) from None


def main() -> int:
    """Run every race; return 0 if all outcomes were correct."""
    asked = parse()
    seed = random.randrange(2**32) if asked.seed is None else asked.seed
    people, rounds, wrong = asked.people, asked.rounds, 0
    told = f"{people} people, half of them for limits; sums of {rounds} rounds from seed {seed}"
    print(told, flush=True)
    for kind in _KINDS:
        races = [race for race in asked.races if race in kind.RACES]
        if not races:
            continue
        with tempfile.TemporaryDirectory() as folder, kind.racing(Path(folder), people) as run:
            for race in races:
                began, result = time.monotonic(), Result()
                for each in range(seed, seed + rounds):
                    result.add(run(race, each), each)
                seconds = time.monotonic() - began
                print(f"{race.name} ({seconds:.0f} s)\n{result}", flush=True)
                wrong += len(result.wrong)
    print(f"WRONG: {wrong}" if wrong else "nothing was wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

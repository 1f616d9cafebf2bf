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

from tests.fixtures.bare_cluster import bare
from tests.race import lines, policies
from tests.race.line_stage import GPUS, line_stage
from tests.race.lines import LINE_RACES, LineRace
from tests.race.policies import POLICY_RACES, PolicyRace
from tests.race.policy_stage import policy_stage
from tests.race.race import RACES, Race, Result, run
from tests.race.stage import stage, twin_on

AnyRace = Race | PolicyRace | LineRace
ALL: tuple[AnyRace, ...] = (*RACES, *POLICY_RACES, *LINE_RACES)

_REACHED = {"the course's GPUs": 8, "a user's servers": 2}
"""The limits that a race for limits has to reach, or it would prove nothing."""
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
    parser.add_argument(
        "people",
        nargs="?",
        type=int,
        default=100,
        help="how many ask (100); half as many in the races for limits",
    )
    parser.add_argument("rounds", nargs="?", type=int, default=5, help="of each race (5)")
    parser.add_argument(
        "races",
        nargs="?",
        type=_races,
        default=list(ALL),
        help="all (the default), or places in the list of races such as 0,3: "
        + "; ".join(f"{place}: {race.name}" for place, race in enumerate(ALL)),
    )
    parser.add_argument("--seed", type=int, help="of the first round of each race (chance)")
    return parser.parse_args(words)


def _races(places: str) -> list[AnyRace]:
    if places == "all":
        return list(ALL)
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
    for_gpus = [race for race in asked.races if isinstance(race, Race)]
    for_limits = [race for race in asked.races if isinstance(race, PolicyRace)]
    wrong = bool(for_gpus) and _race_for_gpus(for_gpus, asked.people, asked.rounds, seed)
    if for_limits:
        wrong |= _race_for_limits(for_limits, asked.people // 2, asked.rounds, seed)
    if in_line := [race for race in asked.races if isinstance(race, LineRace)]:
        wrong |= _race_in_line(in_line, asked.people, asked.rounds, seed)
    return int(wrong)


def _race_for_gpus(races: list[Race], people: int, rounds: int, seed: int) -> bool:
    """Run these races; return whether an outcome was wrong."""
    print(f"{people} people, nodes of 1, 2, 4 and 8 GPUs; sums of {rounds} rounds")
    print(" | ".join(["race", *_COLUMNS]), flush=True)
    wrong = False
    with (
        tempfile.TemporaryDirectory() as folder,
        bare(Path(folder) / "twin") as cluster,
        twin_on(cluster) as twin,
        stage(Path(folder), twin) as set_up,
    ):
        for race in races:
            results = [run(race, set_up, people, seed + i) for i in range(rounds)]
            print(_row(race, results), f"(seed {seed})", flush=True)
            for number, result in enumerate(results):
                wrong |= bool(result.pending or result.fitting or result.reservations)
                for fitting in result.fitting:
                    print(f"  seed {seed + number}: {fitting}", flush=True)
    print("WRONG" if wrong else "0 accepted pods Pending, 0 refusals that would have fitted")
    return wrong


def _race_for_limits(races: list[PolicyRace], people: int, rounds: int, seed: int) -> bool:
    """Run these races; return whether an outcome was wrong."""
    print(f"{people} people, {policies.TABS} tabs each; sums of {rounds} rounds", flush=True)
    wrong = False
    with tempfile.TemporaryDirectory() as folder, policy_stage(Path(folder), people) as set_up:
        users = policies.arrive(set_up)
        for race in races:
            results = [policies.run(race, set_up, users, seed + i) for i in range(rounds)]
            summed = policies.PolicyResult.sum(results)
            print("\n  ".join([f"{race.name} (seed {seed})", *summed.lines()]), flush=True)
            wrong |= bool(summed.wrong) or not summed.peaks.items() >= _REACHED.items()
    print("WRONG" if wrong else "0 limits exceeded, 0 wrong refusals")
    return wrong


def _race_in_line(races: list[LineRace], people: int, rounds: int, seed: int) -> bool:
    """Run these races; return whether an outcome was wrong."""
    print(f"{people} people wait in line for {GPUS} GPUs; each round", flush=True)
    wrong = False
    with tempfile.TemporaryDirectory() as folder, line_stage(Path(folder)) as set_up:
        for race in races:
            for number in range(rounds):
                result = lines.run(race, set_up, people, seed + number)
                told = [f"{race.name} (seed {seed + number})", *result.lines()]
                print("\n  ".join(told), flush=True)
                wrong |= bool(result.wrong)
    print("WRONG" if wrong else "everybody was served, in the promised order")
    return wrong


def _row(race: Race, results: list[Result]) -> str:
    cells = [race.name]
    for column in _COLUMNS:
        values = [getattr(result, column) for result in results]
        total = sum(len(v) if isinstance(v, list) else v for v in values)
        cells.append(f"{total:.0f}")
    return " | ".join(cells)


if __name__ == "__main__":
    sys.exit(main())

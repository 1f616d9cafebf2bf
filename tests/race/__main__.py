"""The whole race, as a table: ``python -m tests.race [PEOPLE [ROUNDS [NUMBERS]]]``.

NUMBERS chooses races by their places, as in ``0,3``. The exit status says whether all was right.
"""

from __future__ import annotations

import random
import sys
import tempfile
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
    "seats",
    "seconds",
)


def main() -> int:
    """Run every race, and say whether all was right."""
    people = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    chosen = [RACES[int(i)] for i in sys.argv[3].split(",")] if len(sys.argv) > 3 else RACES
    print(f"{people} people, nodes of 1, 2, 4 and 8 GPUs; sums of {rounds} rounds", flush=True)
    print(" | ".join(["race", *_COLUMNS]), flush=True)
    wrong = False
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as set_up:
        for race in chosen:
            seed = random.randrange(2**32)
            results = [run(race, set_up, people, seed + i) for i in range(rounds)]
            print(_row(race, results), f"(seed {seed})", flush=True)
            for result in results:
                wrong |= bool(result.pending or result.fitting or result.seats)
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

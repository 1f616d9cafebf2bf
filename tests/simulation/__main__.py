"""Compares ways to decide who gets free GPUs: `python -m tests.simulation`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from gpuspawner.line.order import PART
from tests.simulation.results import Results, quantile, results
from tests.simulation.told import Told, told, weeks
from tests.simulation.workloads import trace, university


def spelled(seconds: float) -> str:
    """Return a duration as people say it."""
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds >= 36000 else f"{seconds / 3600:.1f} h"


def table(found: Results) -> str:
    """Return the results as a Markdown table."""
    sizes = next(iter(found.values())).sizes()
    heads = ["", *(f"{it} GPU{'s' if it > 1 else ''}" for it in sizes)]
    heads += ["mean", "GPU use", "while somebody waits", "give up"]
    lines = [" | ".join(["", *heads, ""]).strip(), "| --- |" + " ---: |" * (len(heads) - 1)]
    for name, result in found.items():
        waits = (result.waits(it) for it in sizes)
        cells = [
            name,
            *(" / ".join(spelled(quantile(it, share)) for share in (0.5, 0.9, 1)) for it in waits),
            spelled(result.mean_wait()),
            *(f"{it:.0%}" for it in (result.use(), result.contended_use(), result.gave_up())),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def told_table(found: Mapping[str, Told]) -> str:
    """Return what people in line were told as a Markdown table."""
    lines = ["| | told | in the range | shorter | longer | width |", "| --- |" + " ---: |" * 5]
    for name, it in found.items():
        shares = (it.share(), it.covered(), it.shorter(), it.longer())
        cells = [name, *(f"{share:.0%}" for share in shares), spelled(60 * it.width())]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print a table for each workload and one of what people were told, and draw the plot."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seeds", type=int, default=10, help="how often to play each workload")
    arguments.add_argument("--reload", type=float, default=5, help="minutes between two tries")
    arguments.add_argument("--part", type=float, default=PART, help="as part_kept_free")
    arguments.add_argument("--plot", type=Path, help="draw PLOT.svg and PLOT-dark.svg")
    given = arguments.parse_args()
    found: dict[str, Results] = {}
    said: dict[str, Told] = {}
    for workload, long in ((university, weeks), (trace, trace)):
        try:
            made = workload(0)
        except FileNotFoundError as error:
            print(f"\nThe trace isn't there, so it isn't played: {error.filename}")
            continue
        print(f"\n{made.name}: {len(made.visits):,} visits, {made.gpus} GPUs, {given.seeds} times")
        print("Waiting times: half of the people / nine of ten / everybody wait no longer.\n")
        found[made.name] = results(workload, range(given.seeds), 60 * given.reload, given.part)
        print(table(found[made.name]), flush=True)
        said[long(0).name] = told(long, range(given.seeds))
    print("\nHow long others have waited, as people in line are told when they join:\n")
    print(told_table(said))
    if given.plot:
        from tests.simulation.plot import draw

        draw(found, given.plot)


if __name__ == "__main__":
    main()

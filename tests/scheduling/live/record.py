"""Records answers of the real scheduler, for tests without a control plane.

Run it with `python -m tests.scheduling.live.record`. It writes `tests/scheduling/answers`.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import tempfile
from pathlib import Path

import msgspec

from tests.fixtures.bare_cluster import bare
from tests.scheduling.generators import FAMILIES, generate
from tests.scheduling.live.api import Plain
from tests.scheduling.live.comparing import ARGUMENTS, Comparison, compare
from tests.scheduling.live.report import Report, keep, table, world_in
from tests.scheduling.live.world import World

ANSWERS = Path(__file__).parents[1] / "answers"
# Fields that the API server adds and that no rule reads.
_IDLE_METADATA = ("managedFields", "resourceVersion", "generation", "creationTimestamp")


def recorded(made: Comparison) -> Plain:
    """Return the case and the scheduler's answer, without fields that don't matter."""
    answer = made.answer
    return {
        "name": made.name,
        "pod": _reduced(made.pod),
        "objects": {
            ARGUMENTS[plural]: [_reduced(each) for each in objects]
            for plural, objects in made.objects.items()
            if objects
        },
        "answer": {
            "node": answer.node,
            "nominated": answer.nominated,
            "message": answer.message,
        },
    }


def _reduced(made: Plain) -> Plain:
    metadata = {key: made["metadata"][key] for key in made["metadata"] if key not in _IDLE_METADATA}
    return made | {"metadata": metadata}


async def record(world: World, family: str, seeds: range, kept: int) -> Report:
    """Compare a family's cases, and write the first ones with the scheduler's answers."""
    report = Report(family)
    lines: list[bytes] = []
    for seed in seeds:
        made = await compare(world, generate(family, seed))
        report.add(made)
        if len(lines) < kept:
            lines.append(msgspec.json.encode(recorded(made)))
    with gzip.GzipFile(ANSWERS / f"{family}.jsonl.gz", "wb", compresslevel=9, mtime=0) as out:
        out.write(b"\n".join(lines) + b"\n")
    return report


async def _main(cases: int, kept: int, seed: int) -> None:
    ANSWERS.mkdir(exist_ok=True)
    reports = []
    with tempfile.TemporaryDirectory() as directory, bare(Path(directory)) as cluster:
        async with world_in(cluster) as world:
            for family in FAMILIES:
                report = await record(world, family, range(seed, seed + cases), kept)
                print(family, keep(report.differences), flush=True)
                reports.append(report)
    print(table(reports))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=50, help="of each family")
    parser.add_argument("--kept", type=int, default=50, help="how many of them are written")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    asyncio.run(_main(arguments.cases, arguments.kept, arguments.seed))

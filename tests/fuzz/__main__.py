"""Sends hostile REST bodies to a hub and prints its findings: `make fuzz N=100000`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from secrets import randbelow

from tests.fixtures.bare_cluster import bare
from tests.fuzz.run import run
from tests.hub.option_sets import FLEET

MEBIBYTE = 2**20


def main() -> int:
    """Run, print the findings, and return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=randbelow(10**9))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, bare(Path(folder, "cluster")) as cluster:
        cluster.add_nodes(FLEET)
        hub = Path(folder, "hub")
        hub.mkdir()
        report = asyncio.run(run(cluster, hub, seed=arguments.seed, count=arguments.count))
    print(f"seed {arguments.seed}, {arguments.count} bodies, {len(report.findings)} findings")
    print("answers:", ", ".join(f"{name} {n}" for name, n in report.answers.most_common()))
    print(f"grown by {report.grown / MEBIBYTE:.1f} MiB since a quarter of the run")
    for finding in report.findings[:50]:
        print(finding)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())

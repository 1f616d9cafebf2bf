"""`make bench` runs all of its parts, whatever becomes of one."""

from __future__ import annotations

import subprocess
import sys


def bench(*parts: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.benchmarks", *parts]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_part_that_fails_is_named_at_the_end_and_the_next_one_runs() -> None:
    done = bench("no_such_part", "clusters", "nor_this")

    assert done.returncode == 1
    assert "## tests.benchmarks.clusters" in done.stdout
    assert done.stderr.splitlines()[-1] == (
        "2 of 3 parts failed: tests.benchmarks.no_such_part, tests.benchmarks.nor_this"
    )


def test_when_all_parts_run_the_exit_status_says_so() -> None:
    done = bench("clusters", "running_pods")

    assert done.returncode == 0
    assert done.stdout.endswith("All 2 parts ran.\n")

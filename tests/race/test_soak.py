"""A small soak; `make soak` is the whole."""

from __future__ import annotations

import subprocess
import sys

SPAWNS = 120


def test_after_every_way_out_of_a_start_no_seat_and_no_pod_is_left() -> None:
    """In a process of its own: the spawner's classes keep clients and reflectors for life."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.race.soak", str(SPAWNS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "served: started" in done.stdout, done.stdout  # not every start has failed
    assert "left: 0 seats, 0 pods" in done.stdout

"""A small soak; `make soak` runs it at full size."""

from __future__ import annotations

import subprocess
import sys

import pytest

SPAWNS = 120


@pytest.mark.nightly("it starts and ends 120 servers")
def test_however_a_start_ends_it_leaves_no_reservation_and_no_pod() -> None:
    """It needs its own process: the spawner's classes keep clients and reflectors forever."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.race.soak", str(SPAWNS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "served: started" in done.stdout, done.stdout  # at least one start succeeded
    assert "left: 0 reservations, 0 pods" in done.stdout

"""A small race, with a real hub, a real scheduler and a twin; `make race` runs all races."""

from __future__ import annotations

from pathlib import Path

from localcluster import LocalCluster
from tests.race.race import RACES, mixed, run
from tests.race.stage import stage, twin_on

PEOPLE = 30


def test_with_mixed_sizes_accepted_servers_run_and_refused_ones_would_not_fit(
    bare_cluster: LocalCluster, tmp_path: Path
) -> None:
    race = next(race for race in RACES if race.sizes is mixed)

    with twin_on(bare_cluster) as twin, stage(tmp_path, twin) as set_up:
        result = run(race, set_up, PEOPLE, seed=2)

    assert result.running == result.accepted > 0
    assert result.pending == result.reservations == 0
    assert result.refused > 0
    assert result.fitting == []

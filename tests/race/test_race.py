"""A small race, with a real hub, a real scheduler and a twin; `make race` runs all races."""

from __future__ import annotations

from pathlib import Path

from localcluster import LocalCluster
from tests.race.gpus import RACES, mixed, recorded_stage, run
from tests.race.twin import twin_on

PEOPLE = 30


def test_with_mixed_sizes_accepted_servers_run_and_refused_ones_would_not_fit(
    bare_cluster: LocalCluster, tmp_path: Path
) -> None:
    race = next(race for race in RACES if race.sizes is mixed)

    with twin_on(bare_cluster) as twin, recorded_stage(tmp_path) as (stage, recording):
        result = run(race, stage, recording, twin, PEOPLE, seed=2)

    assert result.wrong == []
    assert result.counts["running"] == result.counts["accepted"] > 0
    assert result.counts["refused"] > 0

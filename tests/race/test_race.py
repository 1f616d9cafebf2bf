"""A small race, with a real hub, a real scheduler and a twin; `make race` runs all races."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.race.race import RACES, alike, mixed, run
from tests.race.stage import Stage, stage

PEOPLE = 30


@pytest.fixture(scope="module")
def set_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("race")
    with stage(folder) as ready:
        yield ready


def test_exactly_as_many_servers_of_one_gpu_start_as_there_are_gpus(set_up: Stage) -> None:
    race = next(race for race in RACES if race.sizes is alike)

    result = run(race, set_up, PEOPLE, seed=1)

    assert result.running == 15
    assert result.pending == result.reservations == 0
    assert result.fitting == []


def test_with_mixed_sizes_accepted_servers_run_and_refused_ones_would_not_fit(
    set_up: Stage,
) -> None:
    race = next(race for race in RACES if race.sizes is mixed)

    result = run(race, set_up, PEOPLE, seed=2)

    assert result.running == result.accepted > 0
    assert result.pending == result.reservations == 0
    assert result.refused > 0
    assert result.fitting == []

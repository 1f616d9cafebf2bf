"""A small race for places in line; `make race` runs all of them, with a hundred people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.race.line_stage import GPUS, LineStage, line_stage
from tests.race.lines import LINE_RACES, LineRace, run

PEOPLE = 30


@pytest.fixture(scope="module")
def set_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LineStage]:
    folder: Path = tmp_path_factory.mktemp("lines")
    with line_stage(folder) as ready:
        yield ready


@pytest.mark.nightly("a GPU may be idle for a second at most, and it takes minutes")
@pytest.mark.parametrize("race", LINE_RACES, ids=lambda race: race.name)
def test_everybody_in_line_is_served_once_and_in_order(set_up: LineStage, race: LineRace) -> None:
    result = run(race, set_up, PEOPLE, seed=4)

    assert not result.wrong, "\n".join(result.lines())
    assert result.most == GPUS

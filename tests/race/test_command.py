"""The command line of `python -m tests.race`."""

from __future__ import annotations

import pytest

from tests.race.__main__ import ALL, parse
from tests.race.gpus import RACES


def test_without_arguments_a_hundred_users_run_every_race() -> None:
    asked = parse([])

    assert (asked.people, asked.rounds, asked.seed) == (100, 5, None)
    assert asked.races == ALL


def test_people_rounds_races_and_seed_are_arguments() -> None:
    asked = parse(["60", "20", "6,0", "--seed", "786388467"])

    assert (asked.people, asked.rounds, asked.seed) == (60, 20, 786388467)
    assert asked.races == [RACES[6], RACES[0]]


def test_all_means_every_race() -> None:
    assert parse(["60", "20", "all"]).races == ALL


@pytest.mark.parametrize("places", ["99", "-1", "mixed", ""])
def test_an_unknown_race_is_an_error(places: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["60", "20", places])

    assert f"places from 0 to {len(ALL) - 1}" in capsys.readouterr().err

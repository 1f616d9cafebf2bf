"""A few starts that are cut; `make soak` cuts a thousand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.race.cut_starts import Cut
from tests.race.cuts import run
from tests.race.phases import phases

SECONDS = 3.0
STARTS = 29
"""One of each phase in each wave."""


@pytest.mark.nightly("phases last for seconds, and a hub is killed in each wave")
def test_however_a_start_is_cut_nobody_has_two_pods_nothing_is_left_and_the_owner_is_told(
    tmp_path: Path,
) -> None:
    result = run(tmp_path, STARTS, alike=1, seconds=SECONDS)

    assert not result.wrong, "\n".join(result.lines())
    told = {(phase, cut) for phase, cut, _ in result.ends}
    every = {(it.name, cut.value) for it in phases(SECONDS) for cut in Cut}
    assert every - told == {("sending", Cut.POD.value)}  # there is no pod yet

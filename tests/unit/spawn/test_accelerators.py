"""The accelerators on offer, as the source of servers; tests/hub/test_options.py has a hub's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuspawner.spawn.accelerators import Accelerators
from tests.unit.spawn.hubs import StillHub

ADMINISTRATORS: list[Any] = [{"apply_user_options": print}, {"options_from_form": print}]


@pytest.fixture
def accelerators(
    hub_with: Callable[..., StillHub], request: pytest.FixtureRequest
) -> Accelerators | None:
    return hub_with().spawner(**request.param).gates.accelerators


@pytest.mark.parametrize("accelerators", [{}], indirect=True)
def test_where_nobody_else_reads_options_all_of_them_are_ours_to_check(
    accelerators: Accelerators,
) -> None:
    assert accelerators.split({"gpus": 1, "course": "ml"}) == ({"gpus": 1, "course": "ml"}, {})


@pytest.mark.parametrize(
    "accelerators", ADMINISTRATORS, ids=["applied", "read from the form"], indirect=True
)
def test_where_administrators_read_options_other_names_are_theirs(
    accelerators: Accelerators,
) -> None:
    assert accelerators.split({"gpus": 1, "course": "ml"}) == ({"gpus": 1}, {"course": "ml"})


@pytest.mark.parametrize("accelerators", [{}, *ADMINISTRATORS], indirect=True)
def test_what_is_no_object_is_handed_on_for_the_parser_to_refuse(
    accelerators: Accelerators,
) -> None:
    assert accelerators.split(["gpus"]) == (["gpus"], {})

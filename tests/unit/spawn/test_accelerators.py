"""Accelerators as the source of servers; tests/hub/test_options.py tests them in a hub."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gpuspawner.spawn.accelerators import Accelerators
from tests.unit.spawn.hubs import StillHub


def mount_course(spawner: Any) -> None:
    spawner.working_dir = spawner.user_options["course"]


ADMINISTRATORS: list[Any] = [
    {"apply_user_options": print},
    {"options_from_form": print},
    {"pre_spawn_hook": mount_course},
]


@pytest.fixture
def accelerators(
    hub_with: Callable[..., StillHub], request: pytest.FixtureRequest
) -> Accelerators | None:
    return hub_with().spawner(**request.param).gates.sources.accelerators


@pytest.mark.parametrize("accelerators", [{}], indirect=True)
def test_without_administrator_s_hooks_all_options_are_ours(accelerators) -> None:
    assert accelerators.split({"gpus": 1, "course": "ml"}) == ({"gpus": 1, "course": "ml"}, {})


@pytest.mark.parametrize(
    "accelerators",
    ADMINISTRATORS,
    ids=["applied", "read from the form", "read by a hook"],
    indirect=True,
)
def test_with_administrator_s_hooks_other_names_are_theirs(accelerators) -> None:
    assert accelerators.split({"gpus": 1, "course": "ml"}) == ({"gpus": 1}, {"course": "ml"})


@pytest.mark.parametrize("accelerators", [{}, *ADMINISTRATORS], indirect=True)
def test_options_that_are_not_an_object_are_passed_to_the_parser(accelerators) -> None:
    assert accelerators.split(["gpus"]) == (["gpus"], {})

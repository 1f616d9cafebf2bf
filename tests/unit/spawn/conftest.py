"""A hub for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.unit.spawn.courses import NODES, Course
from tests.unit.spawn.hubs import StillHub


@pytest.fixture
def hub_with(monkeypatch: pytest.MonkeyPatch) -> Callable[..., StillHub]:
    """Return a function that makes a hub on a cluster with the given objects."""
    return partial(StillHub, monkeypatch)


@pytest.fixture
def course(hub_with: Callable[..., StillHub]) -> Course:
    return Course(hub_with(*NODES))

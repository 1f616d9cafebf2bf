"""A hub for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.unit.spawn.hubs import StillHub


@pytest.fixture
def hub_with(monkeypatch: pytest.MonkeyPatch) -> Callable[..., StillHub]:
    """Makes a hub before a cluster that has the given objects."""
    return partial(StillHub, monkeypatch)

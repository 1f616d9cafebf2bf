"""Fixtures for streams."""

import time
from collections.abc import Callable
from functools import partial

import pytest

from gpuspawner.web.stream import broadcast
from gpuspawner.web.stream.rhythm import Rhythm
from tests.unit.web.stream.following import Form


@pytest.fixture
def streams(virtual_time: Callable[[], float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a hub's rests take no time, and set anew what forms show."""
    monkeypatch.setattr(time, "monotonic", virtual_time)
    monkeypatch.setattr(broadcast, "Rhythm", partial(Rhythm, virtual_time))
    monkeypatch.setattr(Form, "shows", {"": 0, "other": 0}, raising=False)
    monkeypatch.setattr(Form, "asked", [], raising=False)

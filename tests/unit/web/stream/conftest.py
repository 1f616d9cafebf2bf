"""Fixtures for streams."""

from functools import partial

import pytest

from gpuspawner.web.stream import broadcast
from gpuspawner.web.stream.broadcast import Rhythm
from tests.unit.makers.clocks import VirtualClock
from tests.unit.makers.following import Form


@pytest.fixture
def streams(clock: VirtualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a hub's rests take no time, and set anew what forms show."""
    monkeypatch.setattr(broadcast, "Rhythm", partial(Rhythm, clock))
    monkeypatch.setattr(Form, "shows", {"": 0, "other": 0}, raising=False)
    monkeypatch.setattr(Form, "asked", [], raising=False)

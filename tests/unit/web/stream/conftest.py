"""Fixtures for streams."""

from __future__ import annotations

import pytest

from gpuspawner.web.stream import rhythm
from tests.unit.web.stream.following import MOMENT, Form


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the hub rest only for a moment between two looks, and set what forms show anew."""
    monkeypatch.setattr(rhythm, "LEAST_REST", MOMENT)
    monkeypatch.setattr(rhythm, "MOST_REST", MOMENT)
    monkeypatch.setattr(Form, "shows", {"": 0, "other": 0}, raising=False)
    monkeypatch.setattr(Form, "asked", [], raising=False)

"""Settings of all tests of the preflight."""

import pytest


@pytest.fixture(autouse=True)
def _line_is_served_at_each_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests don't wait for the clock."""
    monkeypatch.setattr("gpuspawner.preflight.waiting_line.REST", 0)

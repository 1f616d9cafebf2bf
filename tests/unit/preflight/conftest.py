"""Settings of all tests of the preflight: they don't wait for the clock."""

from __future__ import annotations

import pytest

from tests.unit.preflight.line_stage import FULL, Stage


@pytest.fixture(autouse=True)
def _virtual_time(clock: object) -> None:
    """See `clock`."""


@pytest.fixture
def stage() -> Stage:
    """A node whose two GPUs are in use."""
    return Stage(*FULL)

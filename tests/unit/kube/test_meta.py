"""The API's times."""

from datetime import UTC, datetime

import pytest

from gpuspawner.kube.meta import moment

pytestmark = pytest.mark.each_python


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21T20:39:00Z",
        "2026-11-21T20:39:00.000000Z",
        "2026-11-21T20:39:00.000000123Z",
        "2026-11-21T21:39:00+01:00",
        "2026-11-21T20:39:00",
    ],
)
def test_a_time_is_read_in_utc(text: str):
    assert moment(text) == datetime(2026, 11, 21, 20, 39, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", [None, "", "soon", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "9" * 1_000_000]
)
def test_what_cannot_be_read_is_no_time(text: str | None):
    assert moment(text) is None

"""The hours in which a policy holds."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from gpuspawner.policies.hours import Hours

pytestmark = pytest.mark.each_python

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    """A moment in Berlin; 2026-11-23 is a Monday."""
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("written", "inside", "outside"),
    [
        ("Mon-Fri 08:00-18:00", "2026-11-23T08:00", "2026-11-23T18:00"),
        ("Mon-Fri 08:00-18:00", "2026-11-27T17:59", "2026-11-28T12:00"),
        ("Sat-Sun", "2026-11-28T00:00", "2026-11-30T00:00"),
        ("Fri-Mon", "2026-11-30T23:59", "2026-12-01T00:00"),
        ("wed", "2026-11-25T12:00", "2026-11-24T12:00"),
        ("22:00-06:00", "2026-11-23T03:00", "2026-11-23T06:00"),
        ("Fri 22:00-06:00", "2026-11-28T05:59", "2026-11-27T05:59"),
        ("Fri 22:00-06:00", "2026-11-27T22:00", "2026-11-28T22:00"),
        ("08:00-24:00", "2026-11-23T23:59", "2026-11-23T07:59"),
        ("09:00-09:00", "2026-11-23T08:59", None),
    ],
)
def test_a_moment_is_within_the_hours_or_not(written, inside, outside) -> None:
    hours = Hours.parse(written, BERLIN)

    assert hours.include(at(inside))
    assert outside is None or not hours.include(at(outside))


def test_hours_are_those_of_the_time_zone() -> None:
    hours = Hours.parse("Mon 00:00-01:00", BERLIN)

    assert hours.include(datetime(2026, 11, 22, 23, 30, tzinfo=UTC))
    assert not hours.include(datetime(2026, 11, 23, 0, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    "written",
    ["", " ", "Mon-", "8-18", "Mon08:00-18:00", "25:00-26:00", "Mon 08:00", "24:00-01:00"],
)
def test_other_texts_are_no_hours(written) -> None:
    with pytest.raises(ValueError, match=r"neither days nor hours|must be in"):
        Hours.parse(written, BERLIN)

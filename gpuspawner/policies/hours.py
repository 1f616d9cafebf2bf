"""The hours of the week in which a policy holds, such as ``Mon-Fri 08:00-18:00``."""

import re
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

import msgspec

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = "|".join(DAYS)
_WRITTEN = re.compile(
    rf"(?:(?P<first>{_DAY})(?:-(?P<last>{_DAY}))?(?:\s+|$))?"
    r"(?:(?P<start>\d\d:\d\d)-(?P<end>\d\d:\d\d))?",
    re.IGNORECASE,
)
_NIGHT = timedelta(days=1)


class Hours(msgspec.Struct, frozen=True):
    """The same hours on some days of the week.

    Attributes:
        days: 0 for Monday to 6 for Sunday; the days on which the hours begin.
        start: Of the day.
        end: Not included; if it isn't after the start, it is on the next day.
        zone: The time zone of both.
    """

    days: frozenset[int]
    start: time
    end: time
    zone: ZoneInfo

    @classmethod
    def parse(cls, text: str, zone: ZoneInfo) -> "Hours":
        """Read days, hours or both: ``Sat-Sun``, ``22:00-06:00``, ``Mon-Fri 08:00-18:00``.

        Raises:
            ValueError: It is nothing of this.
        """
        found = _WRITTEN.fullmatch(text.strip())
        if found is None or not text.strip():
            raise ValueError("it is neither days nor hours")
        first, last = found["first"], found["last"] or found["first"]
        return cls(
            _days(first, last) if first else frozenset(range(7)),
            time.fromisoformat(found["start"] or "00:00"),
            _end(found["end"] or "24:00"),
            zone,
        )

    def include(self, moment: datetime) -> bool:
        """Whether a moment, with a time zone, is within these hours."""
        there = moment.astimezone(self.zone)
        now = there.time()
        if self.start < self.end:
            return there.weekday() in self.days and self.start <= now < self.end
        if now >= self.start:
            return there.weekday() in self.days
        return now < self.end and (there - _NIGHT).weekday() in self.days


def _days(first: str, last: str) -> frozenset[int]:
    """The days from the first to the last, over the end of the week if need be."""
    start, end = DAYS.index(first.capitalize()), DAYS.index(last.capitalize())
    return frozenset((start + step) % 7 for step in range((end - start) % 7 + 1))


def _end(text: str) -> time:
    """The end of some hours; 24:00 is the next day's 00:00."""
    return time() if text == "24:00" else time.fromisoformat(text)

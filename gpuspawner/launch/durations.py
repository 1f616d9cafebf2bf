"""Parses durations as Go prints them: `3m53.352084967s`, `679.368724ms`."""

import re

_UNITS = {
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ns": 1e-9,
}
_PART = r"[0-9]{1,15}(?:\.[0-9]{1,15})?(?:h|ms|m|us|µs|μs|ns|s)"
_PARTS = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(h|ms|m|us|µs|μs|ns|s)")

DURATION = rf"(?:{_PART}){{1,4}}"
"""Matches a duration."""


def seconds(duration: str) -> float:
    """Return the seconds of a text that `DURATION` matches."""
    return sum(float(number) * _UNITS[unit] for number, unit in _PARTS.findall(duration))

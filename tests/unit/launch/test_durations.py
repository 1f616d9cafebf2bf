"""Durations as Go prints them."""

import re

import pytest

from gpuspawner.launch.durations import DURATION, seconds

pytestmark = pytest.mark.each_python


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3m53.352084967s", 233.352084967),
        ("679.368724ms", 0.679368724),
        ("1h0m3s", 3603),
        ("12.5µs", 12.5e-6),  # the sign for micro
        ("12.5μs", 12.5e-6),  # the Greek letter
        ("12us", 12e-6),
        ("7ns", 7e-9),
        ("0s", 0),
    ],
)
def test_each_unit_counts(text: str, expected: float) -> None:
    assert re.fullmatch(DURATION, text)
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "3", "s", "3 s", "-3s", "9" * 400 + "s"])
def test_another_text_is_no_duration(text: str) -> None:
    assert re.fullmatch(DURATION, text) is None

"""Events, whose times and counts may be in one field or the other, or in none."""

import msgspec
import pytest

from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.meta import moment

FIRST, LAST, NEW, SEEN, MADE = (f"2026-11-21T20:39:0{it}Z" for it in range(1, 6))


def event(**fields: object) -> Event:
    return msgspec.convert(fields, Event)


@pytest.mark.parametrize(
    ("fields", "began", "last"),
    [
        ({"firstTimestamp": FIRST, "lastTimestamp": LAST}, FIRST, LAST),
        ({"eventTime": NEW, "firstTimestamp": None, "lastTimestamp": None}, NEW, NEW),
        ({"eventTime": NEW, "series": {"lastObservedTime": SEEN, "count": 3}}, NEW, SEEN),
        ({"metadata": {"creationTimestamp": MADE}}, MADE, MADE),
        ({"firstTimestamp": "odd", "metadata": {"creationTimestamp": MADE}}, MADE, MADE),
        ({}, None, None),
    ],
)
def test_an_event_has_the_times_that_any_of_its_fields_says(fields, began, last):
    made = event(**fields)

    assert (made.began, made.last) == (moment(began), moment(last))


@pytest.mark.parametrize(
    ("fields", "times"),
    [
        ({}, 1),
        ({"count": None, "series": None}, 1),
        ({"count": 7}, 7),
        ({"count": -1}, 1),
        ({"series": {"count": 4}}, 4),
    ],
)
def test_an_event_was_seen_once_at_least(fields, times):
    assert event(**fields).times == times

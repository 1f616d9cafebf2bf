"""The annotation with the grant: what one hub writes, every hub reads, and nothing else counts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.reservations.granted import LONGEST, Granted, WhenIdle, ends_after, read

pytestmark = pytest.mark.each_python

names = st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=8).map(tuple)
grants = st.builds(
    Granted,
    accelerator=st.text(st.characters(codec="utf-8"), max_size=20),
    policies=names,
    groups=names,
    lifetime=st.none() | st.integers(60, 10**9),
    idle=st.none() | st.builds(WhenIdle, *[st.integers(0, 10**9)] * 5),
)


@given(grants)
def test_a_written_grant_is_read_as_it_was(granted: Granted) -> None:
    assert read(granted.written()) == granted


def test_the_annotation_is_short_json_that_other_programs_can_read() -> None:
    granted = Granted("t4", ("course", "size"), ("ml-2026",), 14400)

    assert json.loads(granted.written()) == {
        "accelerator": "t4",
        "policies": ["course", "size"],
        "groups": ["ml-2026"],
        "lifetime": 14400,
    }
    assert Granted().written() == "{}"


def test_keys_of_a_newer_version_are_passed_over() -> None:
    assert read('{"accelerator":"t4","until":"2027"}') == Granted("t4")


UNREADABLE = [
    *("", "null", "[]", '"x"', "{", "[" * 10_000, "\ud800", "\x00"),
    *('{"policies": "p"}', '{"policies": [1]}', '{"groups": {"a": 1}}', '{"lifetime": "1"}'),
    *('{"accelerator": null}', '{"groups": ' + "[" * 5_000, '{"x":' * 3000 + "1" + "}" * 3000),
    '{"groups":["a"]}'.ljust(LONGEST + 1),
]


@pytest.mark.parametrize("written", UNREADABLE, ids=range(len(UNREADABLE)))
def test_an_annotation_that_cannot_be_read_or_is_too_long_says_nothing(written: str) -> None:
    assert read(written) == Granted()


def test_the_longest_annotation_that_a_pod_can_have_is_read() -> None:
    """A user may be in a thousand groups, and is charged to each."""
    assert read('{"groups":["a"]}'.ljust(LONGEST)).groups == ("a",)


def test_a_deadline_that_is_no_number_ends_nothing() -> None:
    assert ends_after({"spec": {"activeDeadlineSeconds": "60"}}, None) is None
    assert ends_after({"spec": {"activeDeadlineSeconds": "60"}}, 3600) == 3600
    assert ends_after({"spec": {"activeDeadlineSeconds": 60}}, 3600) == 60

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


@given(st.text() | st.binary().map(str))
def test_no_text_that_is_no_grant_says_anything_or_raises(written: str) -> None:
    if not written.lstrip().startswith("{"):
        assert read(written) == Granted()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(
    st.dictionaries(st.sampled_from(["accelerator", "policies", "groups", "lifetime", "x"]), values)
)
def test_whatever_is_in_the_annotation_it_is_read_without_an_error(body: object) -> None:
    found = read(json.dumps(body))

    assert all(isinstance(it, str) for it in (found.accelerator, *found.policies, *found.groups))


def test_a_user_in_a_thousand_groups_is_charged_to_each() -> None:
    groups = tuple(f"cn=project-{n},ou=groups,dc=cluster,dc=example,dc=org" for n in range(1000))
    granted = Granted("t4", ("each-group",), groups)

    assert read(granted.written()) == granted


def test_an_annotation_that_is_too_long_is_not_read() -> None:
    def padded(length: int) -> str:
        body = json.dumps({"groups": ["a"]})
        return body + " " * (length - len(body))

    assert read(padded(LONGEST)).groups == ("a",)
    assert read(padded(LONGEST + 1)) == Granted()


def test_nesting_does_not_exhaust_the_stack() -> None:
    assert read('{"x":' * 3000 + "1" + "}" * 3000) == Granted()
    assert read('{"groups":' + "[" * 8000) == Granted()


def test_a_text_that_is_no_unicode_says_nothing() -> None:
    assert read("\ud800") == Granted()


def test_a_deadline_that_is_no_number_ends_nothing() -> None:
    assert ends_after({"spec": {"activeDeadlineSeconds": "60"}}, None) is None
    assert ends_after({"spec": {"activeDeadlineSeconds": "60"}}, 3600) == 3600
    assert ends_after({"spec": {"activeDeadlineSeconds": 60}}, 3600) == 60

"""Quotes of untrusted values in errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.quoting import LONGEST, count, did_you_mean, listing, one_line, quote

pytestmark = pytest.mark.each_python


@given(st.text())
def test_a_quoted_text_is_short_printable_ascii(text):
    quoted = quote(text)

    assert len(quoted) <= LONGEST + 3
    assert quoted.rstrip("'…").isascii()
    assert quoted.isprintable()


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        (None, "null"),
        (True, "true"),
        ("A100", "'A100'"),
        ("x" * 41, "'" + "x" * 40 + "…'"),
        ("é\n", r"'\xe9\n'"),
        (3, "3"),
        (1.5, "1.5"),
        ([[]] * 10**6, "a list"),
        ({"a": 1}, "an object"),
        (object(), "a object"),
        (10**5000, "a very large number"),
    ],
    ids=lambda it: it if isinstance(it, str) else type(it).__name__,
)
def test_a_value_is_quoted_by_its_kind(value, quoted):
    assert quote(value) == quoted


def test_a_misspelt_word_finds_the_nearest_known_word():
    assert did_you_mean("memroy", ["memory", "cpu"]) == " (did you mean 'memory'?)"
    assert did_you_mean("zzz", ["memory", "cpu"]) == ""


def test_a_listing_reads_as_a_sentence():
    assert listing([]) == ""
    assert listing(["1"]) == "1"
    assert listing(["1", "2", "4"]) == "1, 2 or 4"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb\t c", "a b c"),
        ("a" * 300, "a" * 300),
        ("\x1b[31mred\x00", "[31mred"),
        ("x" * 400, "x" * 299 + "…"),
        ("", ""),
    ],
)
def test_a_line_is_one_line_of_printable_text(text: str, line: str) -> None:
    assert one_line(text) == line


def test_one_two_and_many_are_counted_in_one_way() -> None:
    assert [count(it) for it in range(3)] == ["0 nodes", "1 node", "2 nodes"]
    assert count(1, "policy", "policies") == "1 policy"
    assert count(2, "policy", "policies") == "2 policies"

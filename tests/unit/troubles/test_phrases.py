"""What a text is about, by its phrases."""

import pytest

from gpuspawner.troubles.phrases import beginning, reader

pytestmark = pytest.mark.each_python

KIND = reader({"limit": (r"too many", r"\b429\b"), "missing": (r"not found",)})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Not Found", "missing"),
        ("not found: TOO MANY requests", "limit"),
        ("429", "limit"),
        ("1429", None),
        ("", None),
    ],
)
def test_the_first_kind_with_a_phrase_counts(text, kind):
    assert KIND(text) == kind


def test_only_the_begin_of_a_long_text_is_read():
    assert beginning("short") == "short"
    assert 1_000 < len(beginning("x" * 1_000_000)) < 10_000

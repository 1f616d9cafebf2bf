"""Administrators' expressions match as with `re`, but in bounded time."""

import re

import pytest

from gpuspawner.offers import regexes

pytestmark = pytest.mark.each_python

TEXTS = "quay.io/a", "quay.io/secret", "ghcr", "ghcr\n", "io.io", "[a", "", "é", "quay.io/é"


@pytest.mark.timeout(60)  # it would take years
def test_matching_a_text_that_takes_too_long_stops():
    with pytest.raises(regexes.TooLongError):
        regexes.begins("^(a|aa)+$", "a" * 60 + "!")


def test_a_text_that_is_too_long_is_not_matched():
    assert regexes.begins("a*", "a" * regexes.LONGEST)
    with pytest.raises(regexes.TooLongError):
        regexes.begins("a*", "a" * (regexes.LONGEST + 1))


@pytest.mark.parametrize(
    "pattern",
    [
        "^quay.io/.+",
        r"quay\.io/(?!secret)[a-z]+",
        r"(?i)QUAY\.IO/",
        "[[a-z]+",
        r"(?P<host>\w+)\.(?P=host)",
        "",
        r"\Aquay|ghcr\Z",
        r"^[a-z.]+/\w+(:[\w.-]+)?$",
    ],
)
@pytest.mark.filterwarnings("ignore:Possible nested set")
def test_an_expression_matches_as_with_re(pattern):
    for text in TEXTS:
        assert regexes.begins(pattern, text) == bool(re.match(pattern, text)), text


@pytest.mark.parametrize("pattern", ["(", r"\p{L}", "a{2,1}", "[z-a]", "a{9999999999999999999}"])
def test_an_expression_that_re_cannot_read_is_refused(pattern):
    with pytest.raises(re.error):
        regexes.check(pattern)

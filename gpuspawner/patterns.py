"""Administrators' regular expressions, matched with what anybody sends, in bounded time.

An expression such as ``(a|aa)+$`` takes `re` longer than the hub lives, for sixty characters, and
`re` lets no other thread run meanwhile. The package `regex` reads the same expressions and gives
up after a time. It counts the processor's time, so a busy machine refuses nobody.
"""

import re

import regex

LONGEST = 1000
"""Characters that can be written in."""

_SECONDS = 0.05


class TooLongError(Exception):
    """It cannot be said in time whether a text matches."""


def check(pattern: str) -> None:
    """Check an administrator's expression: it has to be one for `re` too, as it is for KubeSpawner.

    Raises:
        re.error: It is none.
    """
    re.compile(pattern)
    try:
        regex.compile(pattern)
    except regex.error as error:
        raise re.error(str(error)) from None


def begins(pattern: str, text: str) -> bool:
    """Whether a text matches from its beginning, as `re.match` has it.

    Raises:
        re.error: The pattern is no regular expression.
        TooLongError: The text is too long, or makes the expression take too long.
    """
    check(pattern)
    if len(text) > LONGEST:
        raise TooLongError
    try:
        return regex.match(pattern, text, timeout=_SECONDS) is not None
    except TimeoutError:
        raise TooLongError from None

"""Administrators' regular expressions, matched against untrusted text in bounded time.

For an expression like ``(a|aa)+$`` and sixty characters, `re` takes longer than the hub lives, and
no other thread runs meanwhile. The package `regex` reads the same expressions and has a timeout. It
counts processor time, so a busy machine doesn't make it refuse a text.
"""

import re

import regex

LONGEST = 1000
"""The longest text to match, in characters."""

_SECONDS = 0.05

_FLAGS = re.compile(r"\A(?:(?:\s|#[^\n]*\n)*\(\?[a-zA-Z]+\))+")
"""Flags for all of an expression: Python takes them only in front, and JavaScript nowhere.

In a verbose one, spaces and comments may be in front of them.
"""


class TooLongError(Exception):
    """The text is too long, or matching it takes too long."""


def check(pattern: object) -> None:
    """Check that both `regex` and `re`, which KubeSpawner uses, can read an expression.

    Raises:
        re.error: One of them can't, or it isn't text.
    """
    if not isinstance(pattern, str):  # an administrator may have written anything
        raise re.error("it isn't text")
    try:
        re.compile(pattern)
        regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError) as error:
        raise re.error(str(error)) from None


def scoped(pattern: str | re.Pattern[str]) -> str:
    """Return an expression whose flags hold for a group, instead of in front or beside it.

    So it can be a part of another one, and JavaScript can read it.

    Raises:
        re.error: As `check`.
    """
    compiled = re.compile(pattern)
    flags = "".join(it for it in "aimsx" if compiled.flags & re.RegexFlag[it.upper()])
    text, end = _FLAGS.sub("", compiled.pattern), "\n" if "x" in flags else ""  # of a comment
    return f"(?{flags}:{text}{end})" if flags else text


def begins(pattern: str, text: str) -> bool:
    """Whether a text matches from its beginning, as with `re.match`.

    Raises:
        re.error: The pattern is not a regular expression.
        TooLongError: The text is too long, or makes the expression take too long.
    """
    check(pattern)
    if len(text) > LONGEST:
        raise TooLongError
    try:
        return regex.match(pattern, text, timeout=_SECONDS) is not None
    except TimeoutError:
        raise TooLongError from None

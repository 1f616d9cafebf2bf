"""Short, harmless quotes of what people and clusters sent, for error texts."""

import difflib
from collections.abc import Iterable

LONGEST = 40
"""How many characters of a foreign text an error repeats."""

_LARGEST = 10**15


def quote(value: object) -> str:
    """Name a foreign value so that the result is short, printable ASCII.

    Texts are escaped and cut to `LONGEST` characters; lists and objects are named by their kind,
    since walking through them could take as long as whoever sent them wished.
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            cut = ascii(value[:LONGEST])[1:-1][:LONGEST]
            return f"'{cut}…'" if len(value) > LONGEST or len(cut) == LONGEST else f"'{cut}'"
        case int():
            # Python refuses to print integers of more than 4,300 digits.
            return str(value) if abs(value) < _LARGEST else "a very large number"
        case float():
            return repr(value)
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def one_line(text: str, longest: int = 300) -> str:
    """The text with white space and control characters as single spaces, cut where it is longer.

    Only the first `4 * longest` characters are looked at.
    """
    printable = "".join(c if c.isprintable() else " " for c in text[: 4 * longest])
    line = " ".join(printable.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean 'x'?)` with the nearest known word, or an empty text."""
    near = difflib.get_close_matches(word[:LONGEST], list(known), n=1)
    return f" (did you mean {quote(near[0])}?)" if near else ""


def listing(words: Iterable[str]) -> str:
    """Words as in a sentence: `1, 2 or 4`."""
    *head, last = list(words) or [""]
    return f"{', '.join(head)} or {last}" if head else last

"""Short, harmless quotes of untrusted values, for error texts; and lists and counts of things."""

import difflib
from collections.abc import Iterable, Mapping

LONGEST = 40
"""How many characters of an untrusted text an error repeats."""

_LARGEST = 10**15


def quote(value: object) -> str:
    """Quote an untrusted value as short, printable ASCII.

    Texts are escaped and cut to `LONGEST` characters. Lists and objects are only named by their
    type, because the sender decides how long walking through them takes.
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
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def one_line(text: str, longest: int = 300) -> str:
    """Make white space and control characters single spaces, and cut to *longest* characters.

    It reads only the first `4 * longest` characters.
    """
    printable = "".join(c if c.isprintable() else " " for c in text[: 4 * longest])
    line = " ".join(printable.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` with the nearest known word, or an empty text."""
    near = nearest(word, known)
    return f" (did you mean {near}?)" if near else ""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a quote of the known word that is most like *word*, or an empty text."""
    near = difflib.get_close_matches(word[:LONGEST], list(known), n=1)
    return quote(near[0]) if near else ""


def listing(words: Iterable[str]) -> str:
    """Join words as in a sentence: `1, 2 or 4`."""
    *head, last = list(words) or [""]
    return f"{', '.join(head)} or {last}" if head else last


def count(number: int, one: str = "node", many: str = "") -> str:
    """Return `1 node` or `2 nodes`, or as many of something else."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"

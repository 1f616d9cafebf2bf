"""The language of the sentences that people read: English, or a translation from a catalogue.

`locale/gpuspawner.pot` lists all sentences. A language is a compiled catalogue beside that list:
``locale/de/LC_MESSAGES/gpuspawner.mo``. What administrators read, in logs and in errors of their
configuration, stays English.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from functools import cache
from gettext import NullTranslations, translation
from pathlib import Path

DOMAIN = "gpuspawner"
LOCALES = Path(__file__).parent / "locale"
ENGLISH = "en"

# The least weight of a language that is wanted at all; 0 excludes it (RFC 9110, 12.4.2).
_LEAST = 0.001

_current: ContextVar[tuple[str, NullTranslations]] = ContextVar(
    "gpuspawner_language",
    default=(ENGLISH, NullTranslations()),
)


def gettext(text: str) -> str:
    """Translate a sentence into the language of the current request."""
    return _current.get()[1].gettext(text)


def ngettext(one: str, many: str, count: int) -> str:
    """Translate a sentence about *count* things, in the language's plural form for this number."""
    return _current.get()[1].ngettext(one, many, count)


def N_(text: str) -> str:  # noqa: N802, the usual name of this mark
    """Mark a text for the catalogues without translating it yet."""
    return text


def one_of(things: Sequence[str]) -> str:
    """Join things to choose from: `a`, `a or b`, `a, b or c`."""
    return _joined(things, gettext("{things} or {last}"))


def all_of(things: Sequence[str]) -> str:
    """Join things that come together: `a`, `a and b`, `a, b and c`."""
    return _joined(things, gettext("{things} and {last}"))


def _joined(things: Sequence[str], text: str) -> str:
    head, last = things[:-1], things[-1]
    return text.format(things=", ".join(head), last=last) if head else last


def sentence(text: str) -> str:
    """Give a text, such as an administrator's, a capital at its start and a period at its end."""
    return f"{text[0].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?", "…")) else ".")


def language_tag() -> str:
    """Return the current language's tag, for HTML."""
    return _current.get()[0]


def set_locale(accepted: str) -> None:
    """Use the first wanted language that has a catalogue, or English, for the rest of this task.

    *accepted* is what a browser sends as ``Accept-Language`` (RFC 9110, 12.5.4), or a single tag.
    """
    _current.set(_catalogue(_choose(accepted)))


def _choose(accepted: str) -> str:
    wanted = []
    for part in accepted.split(",")[:32]:
        tag, _semicolon, quality = part.partition(";")
        language = tag.strip().replace("-", "_")
        if language and (weight := _weight(quality)) > 0:
            wanted.append((weight, language))
    known = {it.lower(): it for it in _known()}
    for _rank, language in sorted(wanted, key=lambda it: -it[0]):
        base = language.partition("_")[0].lower()
        if base == ENGLISH:
            return ENGLISH
        if found := known.get(language.lower()) or known.get(base):
            return found
    return ENGLISH


def _weight(quality: str) -> float:
    name, _equals, value = quality.strip().partition("=")
    try:
        return float(value) if name == "q" else 1.0
    except ValueError:
        return _LEAST


@cache
def _known() -> tuple[str, ...]:
    return tuple(path.parents[1].name for path in LOCALES.glob(f"*/LC_MESSAGES/{DOMAIN}.mo"))


@cache
def _catalogue(language: str) -> tuple[str, NullTranslations]:
    if language == ENGLISH:
        return ENGLISH, NullTranslations()
    return language.replace("_", "-"), translation(DOMAIN, LOCALES, [language])

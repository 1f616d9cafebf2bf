"""The language in which people are told: English as written in the source, or a catalogue of it.

Sentences are marked with `gettext` where they are made; `locale/gpuspawner.pot` has them all, and a
language is a compiled catalogue beside it, ``locale/de/LC_MESSAGES/gpuspawner.mo``. What
administrators read, in logs and in errors of their configuration, stays English.
"""

from contextvars import ContextVar
from functools import cache
from gettext import NullTranslations, translation
from pathlib import Path

DOMAIN = "gpuspawner"
LOCALES = Path(__file__).parent / "locale"
ENGLISH = "en"

# The least weight that a language may have; with 0 it is not wanted (RFC 9110, 12.4.2).
_LEAST = 0.001

_current: ContextVar[tuple[str, NullTranslations]] = ContextVar(
    "gpuspawner_language",
    default=(ENGLISH, NullTranslations()),
)


def gettext(text: str) -> str:
    """A sentence in the language of the person who is served."""
    return _current.get()[1].gettext(text)


def ngettext(one: str, many: str, count: int) -> str:
    """A sentence about a number of things, in the form that the language has for that number."""
    return _current.get()[1].ngettext(one, many, count)


def language_tag() -> str:
    """The language's tag, for HTML."""
    return _current.get()[0]


def set_locale(accepted: str) -> None:
    """Speak the first language wanted that there is; English else. It lasts for this task.

    Args:
        accepted: What a browser sends as ``Accept-Language`` (RFC 9110, 12.5.4), or a single tag.
    """
    _current.set(_catalogue(_choose(accepted)))


def _choose(accepted: str) -> str:
    wanted = []
    for part in accepted.split(",")[:32]:
        tag, _semicolon, quality = part.partition(";")
        language = tag.strip().replace("-", "_")
        if language and (weight := _weight(quality)) > 0:
            wanted.append((weight, language))
    for _weight_of, language in sorted(wanted, key=lambda it: -it[0]):
        base = language.partition("_")[0].lower()
        known = {it.lower(): it for it in _known()}
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

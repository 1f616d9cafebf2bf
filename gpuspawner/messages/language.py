"""The language in which people are told: English as written in the source, or a catalogue of it."""

from contextvars import ContextVar
from gettext import NullTranslations

_spoken: ContextVar[NullTranslations] = ContextVar(
    "gpuspawner_language",
    default=NullTranslations(),  # noqa: B039, it holds nothing that could change
)


def gettext(text: str) -> str:
    """A sentence in the language of the person who is served."""
    return _spoken.get().gettext(text)


def ngettext(one: str, many: str, count: int) -> str:
    """A sentence about a number of things, in the form that the language has for that number."""
    return _spoken.get().ngettext(one, many, count)

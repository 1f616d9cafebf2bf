"""The language of the sentences that people read: English, or a translation from a catalogue.

`locale/gpuspawner.pot` lists all sentences. A language is a compiled catalogue beside that list:
``locale/de/LC_MESSAGES/gpuspawner.mo``. What administrators read, in logs and in errors of their
configuration, stays English.
"""

import re
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from functools import cache, reduce
from gettext import NullTranslations, translation
from pathlib import Path

DOMAIN = "gpuspawner"
LOCALES = Path(__file__).parent / "locale"
ENGLISH = "en"

_RIGHT_TO_LEFT = frozenset({"ar", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"})
# What names the traditional script of Chinese, or a region that writes it.
_TRADITIONAL = frozenset({"hant", "tw", "hk", "mo"})

_ENDS = (".", "!", "?", "…", "。", "！", "？")
# Characters that bring their own space: Chinese, kana, and their punctuation. Korean has spaces.
_CHINESE = re.compile("[\u3001-\u9fff\uff01-\uff60]")

# The least weight of a language that is wanted at all; 0 excludes it (RFC 9110, 12.4.2).
_LEAST = 0.001

_current: ContextVar[tuple[str, NullTranslations]] = ContextVar(
    "gpuspawner_language", default=(ENGLISH, NullTranslations())
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


def listed(things: Iterable[str]) -> str:
    """Join things: `a`, `a, b`, `a, b, c`."""
    return _folded(things, gettext("{things}, {next}"))


def listed_apart(things: Iterable[str]) -> str:
    """Join things that may have commas: `a, b; c`."""
    return _folded(things, gettext("{things}; {next}"))


def one_of(things: Sequence[str]) -> str:
    """Join things to choose from: `a`, `a or b`, `a, b or c`."""
    return _ended(things, gettext("{things} or {last}"))


def all_of(things: Sequence[str]) -> str:
    """Join things that come together: `a`, `a and b`, `a, b and c`."""
    return _ended(things, gettext("{things} and {last}"))


def _folded(things: Iterable[str], text: str) -> str:
    return reduce(lambda before, it: text.format(things=before, next=it), things)


def _ended(things: Sequence[str], text: str) -> str:
    *head, last = things
    return text.format(things=listed(head), last=last) if head else last


def sentence(text: str) -> str:
    """Give a text, such as an administrator's, a capital at its start and a period at its end."""
    period = "。" if _CHINESE.search(text) else "."
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith(_ENDS) else period}"


def sentences(*said: str) -> str:
    """Join sentences, without empty ones; a Chinese full stop brings its own space."""
    return "".join(it if _CHINESE.match(it[-1]) else f"{it} " for it in said if it).rstrip()


def language_tag() -> str:
    """Return the current language's tag, for HTML."""
    return _current.get()[0]


def direction() -> str:
    """Return the direction in which the current language is written, for HTML."""
    return "rtl" if language_tag().partition("-")[0] in _RIGHT_TO_LEFT else "ltr"


def set_locale(accepted: str) -> None:
    """Use the first wanted language that has a catalogue, or English, for the rest of this task.

    *accepted* is what a browser sends as ``Accept-Language`` (RFC 9110, 12.5.4), or a single tag.
    """
    _current.set(_catalogue(_choose(accepted)))


def _choose(accepted: str) -> str:
    wanted = _wanted(accepted)
    known = {it.lower(): it for it in (ENGLISH, *_known())}
    for tag in wanted:
        if found := known.get(tag) or known.get(_usual(tag)):
            return found
    # Nothing that is wanted is there. A reader of Chinese may read the other script, too.
    languages = [tag.partition("_")[0] for tag in wanted]
    near = (name for it in languages for tag, name in known.items() if tag.startswith(f"{it}_"))
    return next(near, ENGLISH)


def _wanted(accepted: str) -> list[str]:
    """Return the wanted tags, the best first: ``zh_tw``."""
    tags = []
    for part in accepted.split(",")[:32]:
        tag, _semicolon, quality = part.partition(";")
        language = tag.strip().replace("-", "_").lower()
        if language and (weight := _weight(quality)) > 0:
            tags.append((weight, language))
    ordered = [tag for _rank, tag in sorted(tags, key=lambda it: -it[0])]
    # Browsers add `zh` after `zh-TW`, for the same kind of Chinese.
    return [tag for at, tag in enumerate(ordered) if not _has_variant(tag, ordered[:at])]


def _has_variant(language: str, tags: Sequence[str]) -> bool:
    return any(tag.startswith(f"{language}_") for tag in tags)


def _usual(tag: str) -> str:
    """Return the catalogue for a tag that has none of its own: that of its language or script."""
    language, *rest = tag.split("_")
    if language != "zh":
        return language
    return "zh_tw" if "hans" not in rest and _TRADITIONAL.intersection(rest) else "zh_cn"


def _weight(quality: str) -> float:
    name, _equals, value = quality.strip().partition("=")
    try:
        return float(value) if name == "q" else 1.0
    except ValueError:
        return _LEAST


@cache
def _known() -> tuple[str, ...]:
    found = LOCALES.glob(f"*/LC_MESSAGES/{DOMAIN}.mo")
    return tuple(sorted(path.parents[1].name for path in found))


@cache
def _catalogue(language: str) -> tuple[str, NullTranslations]:
    if language == ENGLISH:
        return ENGLISH, NullTranslations()
    return language.replace("_", "-"), translation(DOMAIN, LOCALES, [language])

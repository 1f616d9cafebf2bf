"""What a page in another language says, and whether it has room for it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.visiting import DESKTOP, PHONE

PSEUDO = ("zxx", "ar-XB")
"""The languages of tools/pseudo.py."""
LOOKS = pytest.mark.parametrize(
    ("language", "theme", "size"),
    [
        ("zxx", "light", DESKTOP),
        ("zxx", "dark", PHONE),
        ("ar-XB", "dark", DESKTOP),
        ("ar-XB", "light", PHONE),
        ("zh-CN", "light", DESKTOP),
        ("zh-CN", "dark", PHONE),
    ],
    ids=lambda it: it if isinstance(it, str) else "phone" if it is PHONE else "desktop",
)

_TEXTS = """(place) => {
  const told = ["aria-label", "placeholder", "title", "data-busy", "data-never", "data-over",
    "data-ready", "data-here", "data-why", "data-stale", "data-changed"];
  const roots = [...document.querySelectorAll(place)];
  const all = roots.flatMap((it) => [it, ...it.querySelectorAll("*")])
    .filter((it) => !it.closest("style, script, .gpuspawner-raw code"));
  const own = all.flatMap((it) => [...it.childNodes])
    .filter((it) => it.nodeType === Node.TEXT_NODE).map((it) => it.data);
  return [...own, ...all.flatMap((it) => told.map((name) => it.getAttribute(name) ?? ""))];
}"""
_CUT_OFF = """(place) => [...document.querySelectorAll(`${place}, ${place} *`)]
  .filter((it) => it.clientWidth > 0 && it.scrollWidth > it.clientWidth + 1)
  .filter((it) => !it.matches("select, input, .visually-hidden"))
  .map((it) => it.outerHTML.slice(0, 200))"""


def english(page: Page, place: str, known: Any) -> list[str]:
    """Return the words in a part of a page that are in no catalogue.

    Args:
        page: A page in a pseudo-language.
        place: A selector.
        known: The hub's configuration, whose words may be shown.
    """
    text = " ".join(page.evaluate(_TEXTS, place))
    outside = re.sub(r"⟦[^⟦⟧]*⟧", " ", text)
    units = {"gb", "gib", "mib", "choice"}
    return sorted(_words(outside) - _words(str(known)) - units)


def _words(text: str) -> set[str]:
    return set(re.findall("[a-z]{2,}", text.lower()))


def cut_off(page: Page, place: str) -> list[str]:
    """Return the elements in a part of a page whose text is wider than they are."""
    found: list[str] = page.evaluate(_CUT_OFF, place)
    return found

"""Makes two languages that nobody speaks: `python -m tools.pseudo FOLDER`.

``zxx`` has accents, is longer, and puts each message into brackets; ``ar-XB`` is also written from
right to left. On a page in these, a text without brackets isn't in the catalogue, and where a text
is cut off, a translation has no room. A hub speaks them, beside its other languages, if its
configuration has the line that this prints. No release contains them.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

from tools.catalogue import LOCALES, POT, compiled, forms

ACCENTED = str.maketrans("AEIOUYaeiouycnsz", "ÀÈÌÒÙÝàèìòùýçñšž")
_PLACEHOLDER = re.compile(r"(\{\w+\}|%\(\w+\)s)")
_LONGER = 0.4
_FROM_RIGHT, _END = "\u202e", "\u202c"  # as Android's pseudo-locale ar-XB does


def accented(text: str) -> str:
    """Return a longer text with accents, in brackets that leave out its placeholders."""
    words = _PLACEHOLDER.sub(r"⟧\1⟦", text)
    marked = "".join(
        it if _PLACEHOLDER.fullmatch(it) else it.translate(ACCENTED)
        for it in _PLACEHOLDER.split(words)
    )
    return f"⟦{marked}{' ~~~' * round(_LONGER * len(text) / 4)}⟧"


def from_right(text: str) -> str:
    """Return the same, written from right to left between the brackets."""
    return re.sub("⟦([^⟧]*)⟧", rf"⟦{_FROM_RIGHT}\1{_END}⟧", accented(text))


LANGUAGES: dict[str, Callable[[str], str]] = {"zxx": accented, "ar_XB": from_right}


def write(folder: Path) -> str:
    """Write the languages and all translations; return the line for a hub's configuration."""
    shutil.copytree(LOCALES, folder, dirs_exist_ok=True)
    for name, say in LANGUAGES.items():
        path = folder / name / "LC_MESSAGES" / "gpuspawner.mo"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(compiled(_spoken(say)))
    place = f"pathlib.Path({str(folder)!r})"
    return f"import gpuspawner.language, pathlib; gpuspawner.language.LOCALES = {place}\n"


def _spoken(say: Callable[[str], str]) -> Catalog:
    found = Catalog()
    with POT.open("rb") as file:
        for message in read_po(file):
            if message.id:
                said = tuple(map(say, forms(message.id)))
                found.add(message.id, said if message.pluralizable else said[0])
    return found


if __name__ == "__main__":
    print(write(Path(sys.argv[1]).absolute()), end="")

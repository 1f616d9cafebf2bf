"""Keeps the catalogues of all messages: `python tools/catalogue.py`.

It writes the template locale/gpuspawner.pot, puts new messages into each translation, and compiles
them. With `--missing`, it only lists the messages that a translation lacks; people read these in
English. To start a translation, run `pybabel init -D gpuspawner -i gpuspawner/locale/gpuspawner.pot
-d gpuspawner/locale -l de`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

PACKAGE = Path(__file__).parents[1] / "gpuspawner"
LOCALES = PACKAGE / "locale"
POT = LOCALES / "gpuspawner.pot"
METHODS = [("**.py", "python"), ("**/templates/**.html", "jinja2")]
KEYWORDS = {"_": None, "N_": None, "gettext": None, "ngettext": (1, 2)}


def catalogue() -> str:
    """Return the content of the template; it depends on the messages only, not on the date."""
    found = Catalog(project="gpuspawner", copyright_holder="The gpuspawner developers")
    options = {"**/templates/**.html": {"trimmed": "true", "silent": "false"}}
    places = extract_from_dir(str(PACKAGE), METHODS, options_map=options, keywords=KEYWORDS)
    for file, _line, message, _comments, context in sorted(places, key=str):
        # Without a line: babel writes the file alone, though its types don't say so.
        at = [(f"gpuspawner/{file}", None)]
        found.add(message, locations=at, context=context)  # type: ignore[arg-type]
    return _written(found)


def translations() -> list[Path]:
    """Return the files of all translations."""
    return sorted(LOCALES.glob("*/LC_MESSAGES/gpuspawner.po"))


def read(po: Path) -> Catalog:
    """Read a translation; its folder names the language."""
    with po.open("rb") as file:
        return read_po(file, locale=po.parents[1].name)


def merged(po: Path) -> str:
    """Return the content of a translation with the template's messages, and only these."""
    found = read(po)
    with POT.open("rb") as file:
        # A guess at a translation that is nearly the same would pass for one.
        found.update(read_po(file), no_fuzzy_matching=True)
    about = {"Language": po.parents[1].name, "Plural-Forms": found.plural_forms}
    return _written(found, "".join(f'"{name}: {it}\\n"\n' for name, it in about.items()))


def compiled(found: Catalog) -> bytes:
    """Return a translation as a hub reads it, and delete what it lacks.

    For a message with a plural, babel would write the English singular for every number.
    """
    for message in list(missing(found)):
        found.delete(message.id)
    found.creation_date = found.revision_date = datetime.fromtimestamp(0, UTC)
    written = BytesIO()
    write_mo(written, found)
    return written.getvalue()


def missing(found: Catalog) -> Iterator[Message]:
    """Yield the messages without a translation, or with one that nobody has checked."""
    for message in found:
        if message.id and (message.fuzzy or not all(forms(message.string or ""))):
            yield message


def forms(text: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Return the plural forms of a message or its translation; one if it has no plural."""
    return (text,) if isinstance(text, str) else tuple(text)


def _written(found: Catalog, header: str = "") -> str:
    written = BytesIO()
    write_po(
        written,
        found,
        omit_header=True,
        sort_by_file=False,
        sort_output=True,
        width=100,
        ignore_obsolete=True,
    )
    kind = '"Content-Type: text/plain; charset=utf-8\\n"\n'
    return f'msgid ""\nmsgstr ""\n{kind}{header}\n{written.getvalue().decode()}'


def main() -> None:
    """Write all files, or list what is missing."""
    if sys.argv[1:] == ["--missing"]:
        for po in translations():
            for message in missing(read(po)):
                print(f"{po.parents[1].name}: {forms(message.id)[0]}")
        return
    POT.write_text(catalogue(), encoding="utf-8")
    for po in translations():
        po.write_text(merged(po), encoding="utf-8")
        po.with_suffix(".mo").write_bytes(compiled(read(po)))


if __name__ == "__main__":
    main()

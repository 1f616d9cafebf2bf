"""Writes locale/gpuspawner.pot, the catalogue of all messages: `python tools/catalogue.py`.

To start a translation, run `pybabel init -i gpuspawner/locale/gpuspawner.pot -d gpuspawner/locale
-D gpuspawner -l de`; to use it, run `pybabel compile -d gpuspawner/locale -D gpuspawner`.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import write_po

PACKAGE = Path(__file__).parents[1] / "gpuspawner"
POT = PACKAGE / "locale" / "gpuspawner.pot"
METHODS = [("**.py", "python"), ("**/templates/**.html", "jinja2")]
KEYWORDS = {"_": None, "N_": None, "gettext": None, "ngettext": (1, 2)}


def catalogue() -> str:
    """Return the content of the file; it depends on the messages only, not on the date."""
    found = Catalog(project="gpuspawner", copyright_holder="The gpuspawner developers")
    options = {"**/templates/**.html": {"trimmed": "true", "silent": "false"}}
    places = extract_from_dir(str(PACKAGE), METHODS, options_map=options, keywords=KEYWORDS)
    for file, _line, message, _comments, context in sorted(places, key=str):
        # Without a line: babel writes the file alone, though its types don't say so.
        at = [(f"gpuspawner/{file}", None)]
        found.add(message, locations=at, context=context)  # type: ignore[arg-type]
    written = BytesIO()
    write_po(written, found, omit_header=True, sort_by_file=False, sort_output=True, width=100)
    header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n\n'
    return header + written.getvalue().decode()


if __name__ == "__main__":
    POT.parent.mkdir(exist_ok=True)
    POT.write_text(catalogue())

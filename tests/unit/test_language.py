"""The language that a user reads."""

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner import language
from gpuspawner.language import gettext, ngettext, sentence


@pytest.fixture
def german(tmp_path, monkeypatch):
    found = Catalog(locale="de")
    found.add("Free", "Frei")
    found.add(("{count} core", "{count} cores"), ("{count} Kern", "{count} Kerne"))
    path = tmp_path / "de" / "LC_MESSAGES" / "gpuspawner.mo"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        write_mo(file, found)
    monkeypatch.setattr(language, "LOCALES", tmp_path)
    language._known.cache_clear()
    yield
    language._known.cache_clear()
    language._catalogue.cache_clear()
    language.set_locale("")


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize(
    ("accepted", "language_tag"),
    [
        ("de", "de"),
        ("de-AT,en;q=0.5", "de"),
        ("fr, de;q=0.8, en;q=0.9", "en"),
        ("fr;q=0.1,de;q=0.8", "de"),
        ("de;q=0,en;q=0.1", "en"),
        ("de;q=0, *", "en"),
        ("en-GB,de", "en"),
        ("", "en"),
        ("*", "en"),
        ("de;q=nonsense,;;=,,", "de"),
    ],
)
def test_the_language_is_the_first_wanted_one_that_has_a_catalogue(accepted, language_tag):
    language.set_locale(accepted)

    assert language.language_tag() == language_tag
    assert gettext("Free") == ("Frei" if language_tag == "de" else "Free")
    assert ngettext("{count} core", "{count} cores", 2) == (
        "{count} Kerne" if language_tag == "de" else "{count} cores"
    )


@pytest.mark.each_python
@given(st.text(max_size=40))
def test_english_is_the_language_for_anything_that_a_browser_sends(accepted):
    language.set_locale(accepted)

    assert language.language_tag() == "en"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a size", "A size."), ("Ask us!", "Ask us!"), ("It is gone.", "It is gone.")],
)
def test_a_text_becomes_a_sentence(text, expected):
    assert sentence(text) == expected

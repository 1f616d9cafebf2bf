"""The language that a user reads."""

from gettext import NullTranslations

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner import language
from gpuspawner.language import (
    all_of,
    direction,
    gettext,
    listed,
    listed_apart,
    ngettext,
    one_of,
    sentence,
    sentences,
)
from tests.unit.makers.translating import speaking


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
    language.set_locale("")
    language._known.cache_clear()
    language._catalogue.cache_clear()


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
@given(st.text(max_size=40).filter(lambda it: "zh" not in it.lower()))
def test_english_is_the_language_for_anything_else_that_a_browser_sends(accepted):
    language.set_locale(accepted)

    assert language.language_tag() == "en"


@pytest.fixture
def _english_again():
    yield
    language.set_locale("")


@pytest.mark.usefixtures("_english_again")
@pytest.mark.parametrize(
    "accepted",
    [
        "zh",
        "zh-CN",
        "zh-Hans",
        "zh-hans-cn",
        "zh-SG",
        "zh-Hans-HK",
        "zh-CN,zh;q=0.9,en;q=0.8",
        "fr,zh;q=0.5",
        "zh-TW,zh-CN;q=0.8,en;q=0.5",
    ],
)
def test_every_tag_of_simplified_chinese_finds_it(accepted):
    language.set_locale(accepted)

    assert language.language_tag() == "zh-CN"
    assert gettext("Free") == "空闲"


@pytest.mark.usefixtures("_english_again")
@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("zh-TW,zh;q=0.9,en-US;q=0.8,en;q=0.7", "en"),
        ("zh-Hant,en;q=0.1", "en"),
        ("zh-HK,zh;q=0.9", "zh-CN"),
        ("zh-TW", "zh-CN"),
    ],
)
def test_a_reader_of_traditional_chinese_gets_the_simplified_only_if_nothing_else_is_wanted(
    accepted, expected
):
    language.set_locale(accepted)

    assert language.language_tag() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a size", "A size."),
        ("Ask us!", "Ask us!"),
        ("It is gone.", "It is gone."),
        ("请联系 admin", "请联系 admin。"),
        ("已经没有了。", "已经没有了。"),
        ("크기", "크기."),
    ],
)
def test_a_text_becomes_a_sentence(text, expected):
    assert sentence(text) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["It is gone.", "", "Ask us."], "It is gone. Ask us."),
        (["已经没有了。", "请稍后再试。"], "已经没有了。请稍后再试。"),
        (
            ["No translation yet.", "请稍后再试。", "It is gone."],
            "No translation yet. 请稍后再试。It is gone.",
        ),
        (["", ""], ""),
    ],
)
def test_sentences_have_a_space_between_them_but_for_one_after_a_chinese_full_stop(said, expected):
    assert sentences(*said) == expected


@pytest.mark.usefixtures("_english_again")
@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("en", ["a", "a or b", "a, b or c", "a, b and c", "a, b, c", "a; b; c"]),
        ("zh", ["a", "a，或 b", "a、b，或 c", "a、b、c", "a、b、c", "a；b；c"]),
    ],
)
def test_lists_have_the_commas_of_the_language(tag, expected):
    language.set_locale(tag)
    three = ["a", "b", "c"]

    told = [one_of(three[:1]), one_of(three[:2]), one_of(three), all_of(three)]
    assert [*told, listed(three), listed_apart(three)] == expected


@pytest.mark.parametrize(
    ("tag", "expected"), [("en", "ltr"), ("zh-CN", "ltr"), ("ar-XB", "rtl"), ("he", "rtl")]
)
def test_a_language_is_written_in_its_direction(tag, expected):
    with speaking(tag, NullTranslations()):
        assert direction() == expected

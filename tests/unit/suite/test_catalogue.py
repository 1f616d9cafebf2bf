"""The template for translators is that of the source, and translations fit it."""

from __future__ import annotations

import re
from gettext import GNUTranslations
from io import BytesIO

import pytest

from tools.catalogue import POT, catalogue, compiled, forms, merged, missing, read, translations

PLACEHOLDER = re.compile(r"\{\w+\}|%\(\w+\)s")
TRANSLATION = pytest.mark.parametrize("po", translations(), ids=lambda po: po.parents[1].name)


@pytest.mark.each_python
def test_the_catalogue_lists_the_sentences_of_the_source() -> None:
    assert POT.read_text() == catalogue(), "run tools/catalogue.py"


def test_simplified_chinese_is_among_the_translations() -> None:
    assert [po.parents[1].name for po in translations()] == ["zh_CN"]


@TRANSLATION
def test_a_translation_has_the_placeholders_of_its_message(po) -> None:
    wrong = {}
    for message in read(po):
        said = forms(message.string or "")
        # A language without plurals uses the form that names the number.
        asked = [set(PLACEHOLDER.findall(it)) for it in forms(message.id)]
        if (
            all(said)
            and message.id
            and any(set(PLACEHOLDER.findall(it)) != asked[-1] for it in said)
        ):
            wrong[forms(message.id)[0]] = said

    assert wrong == {}


@TRANSLATION
def test_a_translation_has_the_plural_forms_of_its_language(po) -> None:
    found = read(po)
    counted = [it for it in found if it.id and it.pluralizable]

    assert counted
    assert {len(forms(it.string)) for it in counted} == {found.num_plurals}


def test_chinese_has_one_form_for_every_number() -> None:
    (po,) = (it for it in translations() if it.parents[1].name == "zh_CN")

    assert read(po).num_plurals == 1


@TRANSLATION
def test_what_hubs_read_is_compiled_from_the_translation(po) -> None:
    with po.with_suffix(".mo").open("rb") as file:
        shipped = GNUTranslations(file)
    made = GNUTranslations(BytesIO(compiled(read(po))))  # type: ignore[arg-type]

    def texts(of: GNUTranslations) -> dict[object, str]:
        return {key: text for key, text in of._catalog.items() if key}

    assert texts(shipped) == texts(made), "run tools/catalogue.py"
    assert shipped.info()["plural-forms"] == made.info()["plural-forms"]


@pytest.fixture
def half_done(tmp_path):
    """A translation with one message, one that a tool has guessed, and one that is gone."""
    po = tmp_path / "zh_CN" / "LC_MESSAGES" / "gpuspawner.po"
    po.parent.mkdir(parents=True)
    po.write_text(
        'msgid "Free"\nmsgstr "空闲"\n\n#, fuzzy\nmsgid "Full"\nmsgstr "空闲"\n\n'
        'msgid "No such message"\nmsgstr "没有"\n'
    )
    return po


def test_a_translation_gets_the_new_messages_and_loses_the_old_ones(half_done) -> None:
    half_done.write_text(merged(half_done))
    found = read(half_done)

    assert found.get("Free").string == "空闲"
    assert found.get("{count} GPU").string == ("",)
    assert "No such message" not in found


def test_what_has_no_translation_is_listed(half_done) -> None:
    half_done.write_text(merged(half_done))
    found = [forms(it.id)[0] for it in missing(read(half_done))]

    assert "Full" in found  # nobody has looked at the guess
    assert "{count} GPU" in found
    assert "Free" not in found


def test_a_text_without_a_translation_is_shown_in_english(half_done) -> None:
    half_done.write_text(merged(half_done))
    chinese = GNUTranslations(BytesIO(compiled(read(half_done))))  # type: ignore[arg-type]

    assert chinese.gettext("Free") == "空闲"
    assert chinese.gettext("Full") == "Full"
    assert chinese.ngettext("{count} GPU", "{count} GPUs", 2) == "{count} GPUs"

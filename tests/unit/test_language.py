"""In which language people are told, and what of it goes through the catalogue."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from gettext import NullTranslations

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner import language, messages
from gpuspawner.availability import Availability, State
from gpuspawner.form import Live, render
from gpuspawner.language import gettext, ngettext
from gpuspawner.messages import OnForm
from gpuspawner.messages.preview import preview
from gpuspawner.offers import Offers
from gpuspawner.options import GPURequest
from gpuspawner.policy import Denial, DenialReason, Grant
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Alternative,
    CanScaleUp,
    Difference,
    Reason,
    Refuse,
    Room,
    Start,
    UnknownRules,
    Wait,
)
from tests.unit.form.page import Page
from tools.catalogue import POT, catalogue

GIB = 2**30
# Their names have no letter, so that every letter that is left is a sentence's.
OFFERS = Offers.parse(
    accelerators={
        "1": {"display_name": "1", "counts": [1, 2], "node_selector": {"x": "1"}},
        "2": {
            "display_name": "2",
            "resource": "nvidia.com/mig-1g.5gb",
            "node_selector": {"x": "2"},
        },
        "3": {
            "display_name": "3",
            "resource": "nvidia.com/gpu.shared",
            "node_selector": {"x": "3"},
        },
    },
    images={"7": {"image": "7", "display_name": "7"}},
    memory_choices=["8Gi"],
    cpu_choices=[1, 2],
)
ONE = OFFERS.accelerators["1"]
LIVE = Live("8", "8", "8", "8")


class Pseudo(NullTranslations):
    """A language that shows what was translated: it is in brackets."""

    def gettext(self, message: str) -> str:
        return f"⟦{message}⟧"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"⟦{msgid1 if n == 1 else msgid2}⟧"


@contextmanager
def speaking(tag: str, catalogue: NullTranslations) -> Iterator[None]:
    token = language._current.set((tag, catalogue))
    try:
        yield
    finally:
        language._current.reset(token)


def untranslated(text: str) -> str:
    """What stands outside of all brackets, but for units."""
    before = ""
    while before != text:
        before, text = text, re.sub(r"⟦[^⟦⟧]*⟧", "", text)
    return re.sub(r"\b[KMG]i?B\b", "", text)


def room(resource, asked, most_free, free, most, total):
    return Room(resource, asked, most_free, free, most, total)


GRANT = Grant(ONE, 2, None, 8 * GIB, 1000)
ALTERNATIVES = (
    Alternative(GRANT, (Difference.LESS_MEMORY, Difference.LESS_CPU), None),
    Alternative(GRANT, (Difference.OTHER_ACCELERATOR,), room("x", 1, 1, 1, 1, 1)),
    Alternative(Grant(), (Difference.NO_GPU,), None),
)
ROOMS = [
    None,
    *(
        room(resource, 2, most_free, free, most, total)
        for resource in ("nvidia.com/gpu", "memory", "cpu", "pods")
        for most_free, free, most, total in [(0, 0, 1, 1), (0, 0, 4, 4), (1, 1, 4, 4), (1, 3, 4, 8)]
    ),
    room("nvidia.com/gpu", 2, 0, 0, 0, 0),
    room("memory", 8 * GIB, GIB, GIB, GIB, GIB),
]
refusals = st.builds(
    Refuse,
    st.sampled_from([GRANT, Grant(memory=GIB), Grant()]),
    st.sampled_from([Reason.BUSY, Reason.TRY_AGAIN, Reason.TAKEN, Reason.AWAY, Reason.IMPOSSIBLE]),
    st.sampled_from(ROOMS),
    st.sampled_from(ROOMS),
    alternatives=st.lists(st.sampled_from(ALTERNATIVES), max_size=3).map(tuple),
)


@given(refusals)
def test_all_of_a_refusal_goes_through_the_catalogue(decision):
    with speaking("x", Pseudo()):
        for message in (messages.refusal(decision), OnForm.of_refusal(decision).message):
            assert not re.search(r"[a-z]{2}", untranslated(message.text))
        assert not re.search(r"[a-z]{2}", untranslated(preview(decision).text))


def test_all_else_that_is_told_goes_through_the_catalogue():
    waiting = Wait(GRANT, CanScaleUp(1, 2, 8.0))
    unsure = Start(GRANT, (AfterPreemption(), UnknownRules(("x",))))
    with speaking("x", Pseudo()):
        told = [
            messages.misconfigured(),
            messages.unreachable(),
            messages.already_started(),
            messages.denied(Denial(DenialReason.NOT_OFFERED, messages_request("1"))),
            messages.denied(Denial(DenialReason.NOT_OFFERED, messages_request(None))),
            *(message for it in (waiting, unsure) for message in messages.progress(it)),
            *map(preview, (waiting, unsure, Start(GRANT))),
        ]
    for message in told:
        assert not re.search(r"[a-z]{2}", untranslated(message.text)), message.text


def messages_request(accelerator):
    return GPURequest(accelerator)


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("live", [None, LIVE])
def test_all_of_the_form_goes_through_the_catalogue(state, live):
    gpus = room("nvidia.com/gpu", 1, 1, 2, 2, 4)
    rows = [Availability(it, state, gpus) for it in OFFERS.accelerators.values()]
    rows += [Availability(None, state)]
    decision = Refuse(GRANT, Reason.BUSY, room("x", 2, 1, 1, 2, 2), alternatives=ALTERNATIVES)
    with speaking("x", Pseudo()):
        told = OnForm.of_refusal(decision)
        html = render(OFFERS, rows, {"accelerator": "1"}, told, live)
    page = Page(html)
    text = " ".join(element.text for element in page.elements if element.tag not in ("style",))
    style = page.one("style").text if live is None else ""
    assert not re.search(r"[a-z]{2}", untranslated(text.replace(style, "")))
    told_to_the_script = [
        value or ""
        for element in page.elements
        for name, value in element.attributes.items()
        if name
        in ("data-busy", "data-never", "data-why", "data-stale", "data-changed", "aria-label")
    ]
    assert not re.search(r"[a-z]{2}", untranslated(" ".join(told_to_the_script)))
    assert 'lang="x"' in html


def test_the_list_of_sentences_is_that_of_the_source():
    assert POT.read_text() == catalogue(), "run tools/catalogue.py"


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
def test_the_language_is_the_first_wanted_that_there_is(accepted, language_tag):
    language.set_locale(accepted)

    assert language.language_tag() == language_tag
    assert gettext("Free") == ("Frei" if language_tag == "de" else "Free")
    assert ngettext("{count} core", "{count} cores", 2) == (
        "{count} Kerne" if language_tag == "de" else "{count} cores"
    )


@given(st.text(max_size=40))
def test_whatever_a_browser_sends_there_is_a_language(accepted):
    language.set_locale(accepted)

    assert language.language_tag() == "en"

"""The form's button that joins the line, and the page of the line."""

from typing import Any

from gpuspawner.form.render import buttons_instead, render_line, render_refusal
from gpuspawner.form.view_model import LineView, LiveAddresses
from gpuspawner.messages import Message, OnForm, ProfileButton
from tests.unit.makers.drawing import OFFERS, alternatives_of, drawn
from tests.unit.makers.pages import Page

BUSY = Message.of("No A100 is free.")
LIVE = LiveAddresses("form.css", "line.js", "states", "decision", follow="follow.js")


def page(**changes: Any) -> Page:
    view = {"said": "You are next.", "alternatives": (), "progress": "/p", "back": "/b"}
    return Page(render_line(LineView(**{**view, "live": LIVE, **changes})))


def said_of_nothing(shown: Page) -> bool:
    return any(it.text == "Nothing else can start right now." for it in shown.all("p"))


def test_a_form_without_a_line_has_no_button_for_it() -> None:
    assert not drawn(told=OnForm(BUSY)).all("button", name="wait")


def test_a_refusal_that_one_can_wait_for_has_a_button_with_the_place() -> None:
    told = OnForm(BUSY, place=3)
    for form in (drawn(told=told), Page(render_refusal(told, None))):
        button = form.one("button", name="wait")
        assert " ".join(button.text.split()) == "Wait in line 2 people would be ahead of you."
        box = form.one("input", name="wait_even_if_away")
        assert box["checked"] is None
        assert form.elements.index(box) < form.elements.index(button)


def test_the_enter_key_starts_and_doesnt_wait() -> None:
    first = drawn(told=OnForm(BUSY, place=1)).all("button")[0]
    assert (first["name"], first["aria-hidden"]) == (None, "true")


def test_the_page_of_the_line_has_a_button_for_each_server_instead() -> None:
    profile = ProfileButton.of("“T4”", {"profile": "t4"})
    told = OnForm(BUSY, alternatives=alternatives_of(OFFERS), profiles=(profile,))
    shown = page(alternatives=buttons_instead(told, OFFERS))

    assert [it["value"] for it in shown.all("button", name="instead")] == [
        "accelerator=t4&gpus=1&image=pytorch&memory=8Gi&cpu=0.5",
        "accelerator=&gpus=0&image=pytorch&memory=16Gi&cpu=2",
        "profile=t4",
    ]
    assert not said_of_nothing(shown)


def test_a_page_without_anything_instead_says_so() -> None:
    shown = page()
    assert said_of_nothing(shown)
    assert [it.text.strip() for it in shown.all("button")] == ["Leave the line"]


def test_what_is_said_stays_text() -> None:
    shown = page(said="<script>alert(1)</script>", back='"onclick=', progress='"onload=')
    assert shown.one("p", role="status").text == "<script>alert(1)</script>"
    assert [it["src"] for it in shown.all("script")] == ["follow.js", "line.js"]


def test_only_a_page_without_scripts_reloads_itself() -> None:
    shown = page()
    assert shown.one("meta", content="30").within(shown.one("noscript"))

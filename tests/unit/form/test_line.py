"""The form's button that joins the line, and the page of the line."""

from typing import Any

from gpuspawner.form.alternative_button import pressed
from gpuspawner.form.render import render_line, render_refusal
from gpuspawner.form.view_builder import buttons, profile_buttons
from gpuspawner.form.view_model import LineView, LiveAddresses
from gpuspawner.gates import wait_option
from gpuspawner.messages import Message, OnForm, ProfileButton
from gpuspawner.offers.user_options import from_form
from gpuspawner.reservations.place_in_line import Wish
from tests.unit.makers.drawing import OFFERS, alternatives_of, drawn
from tests.unit.makers.pages import Page

BUSY = Message.of("No A100 is free.")
LIVE = LiveAddresses("form.css", "line.js", "states", "decision", follow="follow.js")


def page(**changes: Any) -> Page:
    view = {"said": "You are next.", "alternatives": (), "progress": "/p", "back": "/b"}
    return Page(render_line(LineView(**{**view, "live": LIVE, **changes})))


def said_of_nothing(shown: Page) -> bool:
    return any(it.text == "Nothing else can start right now." for it in shown.all("p"))


def test_a_refusal_that_one_can_wait_for_has_a_button_with_the_place() -> None:
    told = OnForm(BUSY, place=3)
    for form in (drawn(told=told), Page(render_refusal(told, None))):
        button = form.one("button", name="wait")
        assert " ".join(button.text.split()) == "Wait in line 2 people would be ahead of you."
        box = form.one("input", name="wait_even_if_away")
        assert box["checked"] is None
        assert form.elements.index(box) < form.elements.index(button)


def test_the_button_waits_for_what_was_refused_whatever_is_chosen_by_then() -> None:
    told, asked = OnForm(BUSY, place=1), {"accelerator": "a100", "gpus": 4, "memory": "64Gi"}
    form = drawn(asked, told=told)
    sent = form.submitted() | {"accelerator": ["t4"], "gpus--t4": ["1"], "memory": ["8Gi"]}
    button = form.one("button", name="wait")

    fields = pressed({**sent, "wait": [button["value"]]})
    assert wait_option.pressed(fields) is Wish.HERE
    assert from_form(wait_option.without(fields, object())).items() >= asked.items()
    assert pressed({**sent, "wait": ["1"]}) == {**sent, "wait": ["1"]}


def test_the_button_waits_for_the_profile_that_was_refused() -> None:
    told = OnForm(BUSY, place=1)
    button = Page(render_refusal(told, None, {"profile": "gpu", "size": "two"})).one(
        "button", name="wait"
    )

    fields = pressed({"profile": ["cpu"], "wait": [button["value"]]})
    assert wait_option.pressed(fields) is Wish.HERE
    expected = {"profile": ["gpu"], "profile-option-gpu--size": ["two"]}
    assert wait_option.without(fields, object()) == expected


def test_a_button_that_knows_no_choice_waits_for_what_is_chosen() -> None:
    """KubeSpawner takes its default profile if none is sent."""
    button = Page(render_refusal(OnForm(BUSY, place=1), None)).one("button", name="wait")

    assert wait_option.pressed(pressed({"wait": [button["value"]]})) is Wish.HERE


def test_the_page_of_the_line_has_a_button_for_each_server_instead() -> None:
    profile = ProfileButton.of("“T4”", {"profile": "t4"})
    told = OnForm(BUSY, alternatives=alternatives_of(OFFERS), profiles=(profile,))
    shown = page(alternatives=(*buttons(told, OFFERS), *profile_buttons(told)))

    assert [it["value"] for it in shown.all("button", name="gpuspawner-instead")] == [
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

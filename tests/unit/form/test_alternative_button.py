"""The buttons of alternatives."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuspawner.form.alternative_button import INSTEAD, pressed, profile_value, value_of
from gpuspawner.messages import Message, OnForm
from gpuspawner.offers.options import NAMES
from gpuspawner.offers.user_options import GPURequest, from_form, parse
from tests.unit.makers.drawing import OFFERS, alternatives_of, drawn


def test_one_button_sends_all_options_of_an_alternative():
    page = drawn(
        {"accelerator": "a100", "gpus": 4, "memory": "64Gi"},
        told=OnForm(Message.of("No A100 is free."), (), alternatives_of(OFFERS)),
    )
    [t4, plain] = page.all("button", name="gpuspawner-instead")

    assert [" ".join(button.text.split()) for button in (t4, plain)] == [
        "Start with 1 × NVIDIA T4 PyTorch · 8 GiB of memory · 0.5 cores",
        "Start without a GPU PyTorch · 16 GiB of memory · 2 cores",
    ]
    assert {button["type"] for button in (t4, plain)} == {"submit"}
    sent = from_form(pressed({**page.submitted(), INSTEAD: [t4["value"]]}))
    assert parse(sent, OFFERS) == GPURequest("t4", 1, "pytorch", "8Gi", 0.5)
    sent = from_form(pressed({**page.submitted(), INSTEAD: [plain["value"]]}))
    assert parse(sent, OFFERS) == GPURequest(None, 0, "pytorch", "16Gi", 2)


def test_a_form_s_own_choices_are_a_value_like_that_of_a_button():
    cards = {"accelerator": ["a100"], "gpus--a100": ["2"], "image": ["torch"]}
    profiles = {"profile": ["big"], "profile-option-big--gpus": ["2"]}
    others = {"gpus--t4": ["1"], "_xsrf": ["secret"], "profile-option-small--gpus": ["1"]}

    for chosen in (cards, profiles):
        assert pressed({INSTEAD: [value_of({**others, **chosen})]}) == chosen
    assert value_of({**cards, "unlisted_image": ["a" * 10_000]}) == ""
    assert value_of(others) == ""


@pytest.mark.parametrize(
    ("place", "names"),
    [(0, [INSTEAD, INSTEAD]), (1, [INSTEAD, INSTEAD, "wait"])],
    ids=["no line", "a line"],
)
def test_the_enter_key_means_the_plain_start(place, names):
    page = drawn(told=OnForm(Message.of("No."), (), alternatives_of(OFFERS), place=place))
    first, *others = page.all("button", type="submit")

    assert (first["name"], first["tabindex"], first["aria-hidden"]) == (None, "-1", "true")
    assert [button["name"] for button in others] == names
    assert not drawn().all("button")


@given(st.text(max_size=60))
@example("unlisted_image")
@example("unlisted_image=x&gpus--a100=2")
@example("unlisted_gpus--a100=2")
@example("unlisted_accelerator=x")
def test_a_manipulated_button_sends_only_options(value):
    form = pressed({"accelerator": ["t4"], "own": ["kept"], INSTEAD: [value]})

    assert form.pop("own") == ["kept"]
    assert from_form(form).keys() <= set(NAMES) or "profile" in form


def test_a_field_of_an_administrator_s_own_form_is_no_button():
    sent = {"drink": ["tea"], "instead": ["of=coffee"]}

    assert pressed(sent) == sent


def test_a_profile_s_button_replaces_the_fields_of_all_profiles():
    value = profile_value({"profile": "gpu", "gpus": "1", "image--unlisted-choice": "a&b=c"})
    sent = {"profile": ["cpu"], "profile-option-cpu--size": ["big"], "own": ["kept"]}

    assert pressed({**sent, INSTEAD: [value]}) == {
        "own": ["kept"],
        "profile": ["gpu"],
        "profile-option-gpu--gpus": ["1"],
        "profile-option-gpu--image--unlisted-choice": ["a&b=c"],
    }


def test_a_button_of_an_accelerator_keeps_a_hub_s_own_field_named_profile():
    sent = {"profile": ["mine"], "gpus": ["2"], INSTEAD: ["gpus=1"]}

    assert pressed(sent) == {"profile": ["mine"], "gpus": ["1"]}

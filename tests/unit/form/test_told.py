"""Messages on the form: the reason of a refusal, errors at fields, and notices."""

import pytest

from gpuspawner.messages import Message, OnForm
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import FieldError
from gpuspawner.preflight.availability import Availability, State
from tests.unit.makers.drawing import card, drawn


def test_a_message_comes_first_and_is_announced():
    page = drawn(told=OnForm(Message.of("No A100 is free.", "You can have 1 × T4.")))
    alert = page.one("div", role="alert")

    assert " ".join(alert.text.split()) == "No A100 is free. You can have 1 × T4."
    assert page.elements.index(alert) < page.elements.index(page.all("fieldset")[0])
    assert alert["tabindex"] == "-1"
    assert not drawn().all("div", role="alert")


def test_an_error_is_shown_at_its_field_and_tied_to_it():
    errors = (FieldError("gpus", "9 isn't offered."), FieldError("cpu", "x isn't a number."))
    page = drawn({"accelerator": "a100", "gpus": 9}, told=OnForm.of_errors(errors))

    for name, text in (("gpus--a100", "9 isn't offered."), ("cpu", "x isn't a number.")):
        select = page.one("select", name=name)
        assert select["aria-invalid"] == "true"
        error, hint = (select["aria-describedby"] or "").split()
        assert page.by_id(hint).text == ""
        assert page.by_id(error).text == f"{text[0].upper()}{text[1:]}"
    assert page.one("select", name="gpus--t4")["aria-invalid"] is None
    assert "Please check the choices marked below." in page.one("div", role="alert").text


def test_an_error_of_the_accelerator_is_tied_to_all_of_them():
    told = OnForm.of_errors((FieldError("accelerator", "h100 isn't offered."),))
    page = drawn({"accelerator": "h100"}, told=told)

    fieldset = page.all("fieldset")[0]
    assert page.by_id(fieldset["aria-describedby"]).text == "H100 isn't offered."


@pytest.mark.parametrize(
    ("state", "notice"),
    [
        (State.READING, "Reload this page"),
        (State.UNKNOWN, "We can't check which GPUs there are"),
        (State.FREE, "There are no GPUs to choose from"),
    ],
)
def test_a_form_without_gpus_says_why(state, notice):
    page = drawn(offers=Offers(), rows=(Availability(None, state),))

    assert notice in page.one("p", **{"class": "gpuspawner-notice"}).text


@pytest.mark.parametrize("state", [State.READING, State.UNKNOWN, State.FREE])
@pytest.mark.parametrize("told", [None, OnForm(Message.of("No."))])
def test_a_form_whose_gpus_policies_withhold_says_so(state, told):
    rows = (Availability(None, state),)
    page = drawn(offers=Offers(), rows=rows, told=told, no_gpus=["No GPU is offered to you."])

    text = page.one("p", **{"class": "gpuspawner-notice"}).text
    assert text.strip() == "No GPU is offered to you."


def test_a_refusal_of_the_accelerator_is_shown_in_its_card():
    told = OnForm(Message.of("No."), (FieldError("accelerator", "None is free."),))
    page = drawn({"accelerator": "t4"}, told=told)
    radio = page.one("input", type="radio", value="t4")

    error = page.by_id((radio["aria-describedby"] or "").split()[-1])
    assert error.text == "None is free."
    assert error.within(card(page, "t4"))


def test_a_choice_that_is_no_longer_offered_is_named_and_replaced():
    notices = {"class": "gpuspawner-notice"}
    notice = drawn({"accelerator": "a100", "image": "old"}).one("p", **notices)

    assert "Image: 'old' is no longer offered" in notice.text
    assert not drawn({}).all("p", **notices)

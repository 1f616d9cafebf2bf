"""Errors in options, and earlier choices that are no longer offered."""

from gpuspawner.messages.corrections import (
    correction,
    correction_at_fields,
    gone_at_start,
    gone_from_form,
)
from gpuspawner.offers.options import FieldError
from gpuspawner.offers.parsing import Gone


def test_a_correction_names_each_field():
    errors = (
        FieldError("", "There is no option 'x'."),
        FieldError("gpus", "<b> isn't a number. Choose 1 or 2."),
    )

    assert correction(errors).text == (
        "Please check your choices. There is no option 'x'. "
        "gpus: <b> isn't a number. Choose 1 or 2."
    )
    assert "&lt;b&gt;" in correction(errors).html


def test_the_message_on_a_form_leaves_errors_to_the_fields():
    here = FieldError("gpus", "3 isn't offered.")
    nowhere = FieldError("", "There is no option 'x'.")

    assert correction_at_fields((here,)).text == "Please check the choices marked below."
    assert correction_at_fields((nowhere, here)).text == (
        "Please check the choices marked below. There is no option 'x'."
    )
    assert correction_at_fields((nowhere,)).text.startswith("Please check your choices. There")


def test_a_choice_that_is_no_longer_offered_is_named_with_its_replacement():
    gone = (Gone("accelerator", "'h100'"), Gone("image", "'<b>'"))

    assert gone_from_form(gone).text == (
        "Some of your last choices are no longer offered: GPU 'h100', Image '<b>'. "
        "Please check your choices before you start."
    )
    told = gone_at_start(gone, {"accelerator": None, "image": "lab"})
    assert told.text == (
        "Some of your last choices are no longer offered, so your server starts with others. "
        "GPU: none instead of 'h100'. Image: lab instead of '<b>'."
    )
    assert "&lt;b&gt;" in told.html

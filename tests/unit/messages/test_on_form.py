"""The texts on a form after a refusal."""

import pytest

from gpuspawner.messages import OnForm, refusal
from gpuspawner.messages.on_form import (
    correction,
    correction_at_fields,
    gone_at_start,
    gone_from_form,
)
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.options import FieldError
from gpuspawner.offers.types import Accelerator
from gpuspawner.offers.user_options import Gone
from gpuspawner.preflight.decision import (
    Alternative,
    Difference,
    Reason,
    Refuse,
    ResourceRoom,
    TaintedNodes,
)
from gpuspawner.preflight.kueue import Closed, Never, WhyClosed
from gpuspawner.scaling.outlook import Obstacle, WhyNoNode

GI = 2**30
A100 = Accelerator("a100", "A100", "nvidia.com/gpu")
WITHOUT = Alternative(Grant(), (Difference.NO_GPU,), None)


def gpus(asked, most_free, most):
    return ResourceRoom("nvidia.com/gpu", asked, most_free, most_free, most, most)


def memory(asked, most_free, most):
    return ResourceRoom("memory", asked * GI, most_free * GI, most_free * GI, most * GI, most * GI)


AT_FIELDS = {
    FieldError("gpus", "The most on one machine is 2 right now."): [
        (Reason.BUSY, gpus(4, 2, 4), None)
    ],
    FieldError("accelerator", "None is free."): [(Reason.BUSY, gpus(1, 0, 4), None)],
    FieldError("gpus", "The most on one machine is 4."): [(Reason.IMPOSSIBLE, gpus(8, 4, 4), None)],
    FieldError("accelerator", "No machine here has it."): [
        (Reason.IMPOSSIBLE, gpus(1, 0, 0), None)
    ],
    FieldError("accelerator", "Not available."): [
        (Reason.IMPOSSIBLE, gpus(1, 2, 4), None),
        # because of its volume, say; its memory is free again tomorrow
        (Reason.IMPOSSIBLE, gpus(1, 2, 4), memory(64, 30, 100)),
    ],
    FieldError("memory", "With your other choices, the most is 30 GiB of memory right now."): [
        (Reason.BUSY, gpus(1, 2, 4), memory(64, 30, 100))
    ],
    FieldError("memory", "With your other choices, the most is 100 GiB of memory."): [
        (Reason.IMPOSSIBLE, gpus(1, 2, 4), memory(640, 30, 100))
    ],
    FieldError("accelerator", "Not available right now."): [(Reason.AWAY, gpus(1, 0, 0), None)],
}


@pytest.mark.parametrize(
    ("error", "reason", "room", "shortage"),
    [(it, *facts) for it, its in AT_FIELDS.items() for facts in its],
)
def test_a_refusal_is_shown_at_the_field_that_could_change_it(error, reason, room, shortage):
    grant = Grant(A100, room.asked, memory=shortage.asked if shortage else None)
    told = OnForm.of_refusal(Refuse(grant, reason, room, shortage))

    assert told.errors == (error,)


def test_no_field_says_that_there_are_too_few_where_the_larger_machines_are_reserved():
    behind = (TaintedNodes("team", "x", "NoSchedule", 1, large=1),)
    no = Refuse(Grant(A100, 4), Reason.IMPOSSIBLE, gpus(4, 1, 1), taints=behind)

    assert OnForm.of_refusal(no).errors == (FieldError("accelerator", "Not available."),)


def test_a_smaller_amount_is_chosen_at_its_field_where_the_larger_machines_are_reserved():
    behind = (TaintedNodes("team", "x", "NoSchedule", 1, large=1),)
    no = Refuse(
        Grant(memory=100 * 2**30), Reason.IMPOSSIBLE, None, memory(100, 64, 64),
        taints=behind, candidates=1,
    )  # fmt: skip

    text = "With your other choices, the most is 64 GiB of memory."
    assert OnForm.of_refusal(no).errors == (FieldError("memory", text),)
    assert "With your other choices, the most is 64 GiB of memory." in refusal(no).text


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (Reason.BUSY, "No machine has enough free right now."),
        (Reason.IMPOSSIBLE, "No machine here has enough."),
    ],
)
def test_a_request_that_differs_from_the_choice_is_not_shown_as_the_choice(reason, text):
    chosen = Grant(A100, 1, memory=128 * GI)
    told = OnForm.of_refusal(Refuse(chosen, reason, gpus(1, 2, 4), memory(64, 30, 40)))

    assert told.errors == (FieldError("memory", text),)


def test_buttons_replace_the_sentence_about_alternatives():
    refusal = Refuse(Grant(A100, 1), Reason.BUSY, gpus(1, 0, 1))

    assert OnForm.of_refusal(refusal).message.text == (
        "The one A100 is in use right now. Please try again a little later."
    )
    with_a_way_out = Refuse(Grant(A100, 1), Reason.BUSY, gpus(1, 0, 1), alternatives=(WITHOUT,))
    told = OnForm.of_refusal(with_a_way_out)
    assert told.message.text == "The one A100 is in use right now."
    assert told.alternatives == (WITHOUT,)


def test_above_the_buttons_a_refusal_says_why_no_machine_can_be_added():
    full = (Obstacle(WhyNoNode.AT_MAXIMUM, "a100", nodes=1),)
    refusal = Refuse(Grant(A100, 1), Reason.BUSY, alternatives=(WITHOUT,), obstacles=full)

    assert OnForm.of_refusal(refusal).message.text.endswith(
        "No more machines can be added: their number is at its maximum."
    )


@pytest.mark.parametrize(
    ("reason", "queue"),
    [
        (Reason.QUOTA, Never("gpus", "nvidia.com/gpu", 4, 2)),
        (Reason.NOT_ADMITTED, Closed("gpus", WhyClosed.NO_QUEUE)),
    ],
)
def test_what_a_queue_never_gives_is_not_told_as_if_it_came_back(reason, queue):
    assert OnForm.of_refusal(Refuse(Grant(A100, 4), reason, queue=queue)).errors == ()


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

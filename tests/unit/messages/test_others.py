"""Messages for users other than refusals, and messages for administrators."""

import pytest

from gpuspawner.cluster.health import Forbidden, Live, Reading, Stale, Unreachable
from gpuspawner.messages import (
    correction,
    correction_at_fields,
    explain_health,
    explain_refusal,
    explain_unknown,
    gone_at_start,
    gone_from_form,
    progress,
)
from gpuspawner.messages.words import amount, cores, memory, minutes
from gpuspawner.offers import Accelerator
from gpuspawner.options import FieldError, Gone
from gpuspawner.policy import Grant
from gpuspawner.preflight.decision import (
    AfterPreemption,
    CanScaleUp,
    Reason,
    Refuse,
    Start,
    TaintedNodes,
    UnknownRules,
    ViewNotLive,
    Wait,
)

A100 = Accelerator("a100", "A100", "nvidia.com/gpu")


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


def test_a_new_machine_is_announced_with_its_usual_time():
    (message,) = progress(Wait(Grant(A100, 1), CanScaleUp(1, 4, 8)))

    assert message.text == (
        "A new machine is starting for you; this usually takes about 8 minutes."
    )


def test_a_server_that_simply_starts_gives_no_message():
    assert progress(Start(Grant())) == ()


def test_several_unknowns_give_one_message():
    notes = (UnknownRules(("device claims",)), ViewNotLive(Reading(3)), AfterPreemption())

    assert [message.text for message in progress(Start(Grant(), notes))] == [
        "We couldn't check for free GPUs; starting your server anyway.",
        "Making room for your server; this takes a moment longer.",
    ]


@pytest.mark.parametrize(
    ("health", "words"),
    [
        (Live(2), "last confirmed 2 s ago"),
        (Reading(3), "The hub is still reading the cluster"),
        (Stale(90, "timed out"), "last confirmed 90 s ago (timed out)"),
        (
            Forbidden(("nodes", "pods"), "no"),
            "watch nodes and pods. The hub's service account needs list and watch on them",
        ),
        (Unreachable("connection refused"), "can't reach the API server: connection refused"),
    ],
)
def test_administrators_read_what_is_wrong_with_the_view(health, words):
    assert words in explain_health(health)
    assert ("servers start unchecked" in explain_health(health)) == (not isinstance(health, Live))


def test_administrators_read_why_room_is_unknown():
    notes = (UnknownRules(("a", "b")), ViewNotLive(Unreachable("x")), AfterPreemption())

    assert explain_unknown(Start(Grant(), notes)) == (
        "Room for the pod is unknown: a; b",
        (
            "Room for the pod is unknown. The hub can't reach the API server: x. The hub keeps "
            "trying. Until then, servers start unchecked."
        ),
    )


def test_administrators_read_the_schedulers_words_and_the_missing_taints():
    decision = Refuse(
        Grant(A100, 2),
        Reason.IMPOSSIBLE,
        taints=(TaintedNodes("team", "physics", "NoSchedule", 3),),
        scheduler_message="0/3 nodes are available: 3 node(s) had untolerated taint(s).",
    )

    assert explain_refusal(decision) == (
        "Refused (impossible; 2 × a100): 0/3 nodes are available: 3 node(s) had untolerated "
        "taint(s).; 3 node(s) have the taint team=physics:NoSchedule, which the pod doesn't "
        "tolerate"
    )


def test_other_resources_have_their_units():
    assert amount("ephemeral-storage", 2**30) == "1 GiB of disk"
    assert amount("nvidia.com/gpu", 4) == "4 × nvidia.com/gpu"


def test_amounts_have_readable_units():
    assert memory(16 * 1024**3) == "16 GiB"
    assert memory(1536 * 1024**2) == "1.5 GiB"
    assert memory(500) == "500 bytes"
    assert [cores(500), cores(1000), cores(2000)] == ["0.5 cores", "1 core", "2 cores"]
    assert [minutes(0.2), minutes(1), minutes(8)] == [
        "about a minute",
        "about a minute",
        "about 8 minutes",
    ]


def test_a_choice_that_is_no_longer_offered_is_named_with_its_replacement():
    gone = (Gone("accelerator", "'h100'"), Gone("image", "'<b>'"))

    assert gone_from_form(gone).text == (
        "Some of your last choices are no longer offered: accelerator 'h100', image '<b>'. "
        "Please check your choices before you start."
    )
    told = gone_at_start(gone, {"accelerator": None, "image": "lab"})
    assert told.text == (
        "Some of your last choices are no longer offered, so your server starts with others. "
        "accelerator: none instead of 'h100'. image: lab instead of '<b>'."
    )
    assert "&lt;b&gt;" in told.html

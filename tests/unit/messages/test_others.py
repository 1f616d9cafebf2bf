"""What people read besides refusals, and what administrators read."""

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
        FieldError("", "there is no option 'x'; there are gpus and image"),
        FieldError("gpus", "<b> is not a number; choose 1 or 2"),
    )

    assert correction(errors).text == (
        "Please check your choices. There is no option 'x'; there are gpus and image. "
        "gpus: <b> is not a number; choose 1 or 2."
    )
    assert "&lt;b&gt;" in correction(errors).html


def test_on_a_form_a_field_tells_its_error_itself():
    here = FieldError("gpus", "3 is not on offer")
    nowhere = FieldError("", "there is no option 'x'")

    assert correction_at_fields((here,)).text == "Please check the choices marked below."
    assert correction_at_fields((nowhere, here)).text == (
        "Please check the choices marked below. There is no option 'x'."
    )
    assert correction_at_fields((nowhere,)).text.startswith("Please check your choices. There")


def test_a_new_machine_is_promised_with_its_usual_time():
    (message,) = progress(Wait(Grant(A100, 1), CanScaleUp(1, 4, 8)))

    assert message.text == (
        "A new machine is being started for you; this usually takes about 8 minutes."
    )


def test_a_plain_start_needs_no_words():
    assert progress(Start(Grant())) == ()


def test_what_could_not_be_checked_is_told_once():
    notes = (UnknownRules(("device claims",)), ViewNotLive(Reading(3)), AfterPreemption())

    assert [message.text for message in progress(Start(Grant(), notes))] == [
        "Whether there is room could not be checked, so your server is simply tried.",
        "A place is being cleared for your server; that takes a moment longer.",
    ]


@pytest.mark.parametrize(
    ("health", "words"),
    [
        (Live(2), "last confirmed 2 s ago"),
        (Reading(3), "Still reading the cluster"),
        (Stale(90, "timed out"), "nothing was confirmed for 90 s (timed out)"),
        (Forbidden(("nodes", "pods"), "no"), "watch nodes and pods; its service account needs get"),
        (Unreachable("connection refused"), "cannot be reached: connection refused"),
    ],
)
def test_administrators_are_told_what_is_wrong_with_the_view(health, words):
    assert words in explain_health(health)
    assert ("without being checked" in explain_health(health)) == (not isinstance(health, Live))


def test_administrators_are_told_why_room_is_unknown():
    notes = (UnknownRules(("a", "b")), ViewNotLive(Unreachable("x")), AfterPreemption())

    assert explain_unknown(Start(Grant(), notes)) == (
        "Room for the pod is unknown: a; b",
        (
            "Room for the pod is unknown. The API server cannot be reached: x. It is being "
            "retried. Until then servers start without being checked."
        ),
    )


def test_administrators_read_the_schedulers_words_and_the_taints_it_leaves_out():
    decision = Refuse(
        Grant(A100, 2),
        Reason.IMPOSSIBLE,
        taints=(TaintedNodes("team", "physics", "NoSchedule", 3),),
        scheduler_message="0/3 nodes are available: 3 node(s) had untolerated taint(s).",
    )

    assert explain_refusal(decision) == (
        "Refused (impossible; 2 × a100): 0/3 nodes are available: 3 node(s) had untolerated "
        "taint(s).; 3 node(s) have the taint team=physics:NoSchedule, which the pod does not "
        "tolerate"
    )


def test_other_resources_are_told_in_their_units():
    assert amount("ephemeral-storage", 2**30) == "1 GiB of disk"
    assert amount("nvidia.com/gpu", 4) == "4 × nvidia.com/gpu"


def test_amounts_are_in_the_units_people_use():
    assert memory(16 * 1024**3) == "16 GiB"
    assert memory(1536 * 1024**2) == "1.5 GiB"
    assert memory(500) == "500 bytes"
    assert [cores(500), cores(1000), cores(2000)] == ["0.5 cores", "1 core", "2 cores"]
    assert [minutes(0.2), minutes(1), minutes(8)] == [
        "about a minute",
        "about a minute",
        "about 8 minutes",
    ]


def test_a_choice_that_has_gone_is_named_with_what_comes_in_its_place():
    gone = (Gone("accelerator", "'h100'"), Gone("image", "'<b>'"))

    assert gone_from_form(gone).text == (
        "Not all of your last choices are on offer any more. What you cannot choose now: "
        "accelerator 'h100', image '<b>'. Please look at the choices before you start."
    )
    told = gone_at_start(gone, {"accelerator": None, "image": "lab"})
    assert told.text == (
        "Not all of your last choices are on offer any more. Your server starts with "
        "accelerator none, image lab in place of accelerator 'h100', image '<b>'."
    )
    assert "&lt;b&gt;" in told.html

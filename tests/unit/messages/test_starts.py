"""What a start will do, before it and during it."""

from gpuspawner.cluster.health import Reading
from gpuspawner.messages import progress
from gpuspawner.messages.starts import preview
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.types import Accelerator
from gpuspawner.preflight.decision import (
    AfterPreemption,
    CanScaleUp,
    Start,
    UnknownRules,
    ViewNotLive,
    Wait,
)
from gpuspawner.scaling.outlook import MayScaleUp, Source

WAIT = Wait(Grant(Accelerator("a100", "A100", "nvidia.com/gpu"), 1), CanScaleUp(1, 4, 8))


def test_a_server_that_simply_starts_gives_no_message():
    assert progress(Start(Grant())) == ()


def test_several_unknowns_give_one_message():
    notes = (UnknownRules(("device claims",)), ViewNotLive(Reading(3)), AfterPreemption())

    assert [message.text for message in progress(Start(Grant(), notes))] == [
        "We couldn't check availability; starting your server anyway.",
        "Making room for your server; this takes a moment longer.",
    ]


def test_room_that_others_take_long_to_leave_is_told_with_the_time():
    for seconds in (0, 30):
        soon = Start(Grant(), (AfterPreemption(seconds),))
        assert preview(soon).text == "There is room for this right now."
    late = Start(Grant(), (AfterPreemption(600),))

    assert preview(late).text == (
        "There is room for this once others have ended, which can take up to 10 minutes."
    )
    assert [it.text for it in progress(late)] == [
        "Making room for your server; this can take up to 10 minutes."
    ]


def test_the_form_foretells_a_new_machine_room_and_an_unknown():
    unknown = Start(Grant(), (UnknownRules(("device claims",)),))

    assert [preview(it).text for it in (WAIT, Start(Grant()), unknown)] == [
        "A new machine will start for your server; this usually takes about 8 minutes.",
        "There is room for this right now.",
        "We can't check availability right now.",
    ]


def test_a_new_machine_without_a_known_time_takes_some_minutes():
    scale_up = CanScaleUp(1, None, None)

    assert preview(Wait(Grant(), scale_up)).text == (
        "A new machine will start for your server; this takes a few minutes."
    )
    assert [message.text for message in progress(Wait(Grant(), scale_up))] == [
        "A new machine is starting for you; this takes a few minutes."
    ]


def test_a_trial_is_called_so_before_the_start():
    assert preview(Wait(Grant(), MayScaleUp(Source.NODES))).text == (
        "No machine has room for your server right now. "
        "The cluster may add one when you start your server."
    )

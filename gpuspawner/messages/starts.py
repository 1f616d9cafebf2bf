"""What a start will do, on the form before it and on the progress page during it."""

from gpuspawner.language import gettext as _
from gpuspawner.messages.kueue import decides
from gpuspawner.messages.refusals import refusal, why
from gpuspawner.messages.scaling import takes
from gpuspawner.messages.words import Message, duration, so_far
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Decision,
    InQueue,
    Note,
    Overruled,
    Refuse,
    Start,
    Wait,
)
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp


def preview(decision: Decision) -> Message:
    """Describe what would happen if the server started now."""
    if isinstance(decision, Refuse):
        return refusal(decision)
    if isinstance(decision, Wait):
        return _expected(decision.scale_up)
    if decision.queue is not None:
        return decides(decision.queue)
    for note in decision.notes:
        if isinstance(note, Overruled):
            return Message.of(why(note.refusal), _("The hub would start your server anyway."))
    if (seconds := decision.seconds_to_make_room) is not None:
        return _room(seconds)
    return Message.of(_("We can't check availability right now."))


def progress(decision: Start | Wait) -> tuple[Message, ...]:
    """Return the messages about a start in progress; none if it simply starts."""
    if isinstance(decision, Wait):
        return (_coming(decision.scale_up),)
    # Several unknowns give the same sentence. The queue tells more as soon as it knows the pod.
    notes = (note for note in decision.notes if not isinstance(note, InQueue))
    return tuple(dict.fromkeys(map(_note, notes)))


def ends_after(seconds: int) -> Message:
    """Say how long a server that is starting may run."""
    text = _("This server ends {time} after it starts. Save your work before then.")
    return Message.of(text.format(time=duration(seconds)))


def node_comes(scale_up: CanScaleUp | MayScaleUp) -> Message:
    """Say that a node is on its way, and how long that usually takes."""
    if usual := takes(scale_up):
        text = _("A new machine is starting for you; this usually takes {time}.")
        return Message.of(text.format(time=usual))
    return Message.of(_("A new machine is starting for you; this takes a few minutes."))


def node_still_comes(scale_up: CanScaleUp | MayScaleUp, elapsed: int) -> Message:
    """Say for how many seconds a node has been on its way."""
    time = so_far(elapsed, takes(scale_up))
    return Message.of(_("A new machine is starting for you."), time)


def _expected(scale_up: CanScaleUp | MayScaleUp) -> Message:
    if isinstance(scale_up, MayScaleUp):
        return Message.of(_no_room(), _("The cluster may add one when you start your server."))
    if usual := takes(scale_up):
        text = _("A new machine will start for your server; this usually takes {time}.")
        return Message.of(text.format(time=usual))
    return Message.of(_("A new machine will start for your server; this takes a few minutes."))


def _coming(scale_up: CanScaleUp | MayScaleUp) -> Message:
    if isinstance(scale_up, MayScaleUp):
        return Message.of(_no_room(), _("The cluster may add one; if it doesn't, we'll tell you."))
    return node_comes(scale_up)


def _no_room() -> str:
    return _("No machine has room for your server right now.")


def _note(note: Note) -> Message:
    if isinstance(note, Overruled):
        return Message.of(why(note.refusal), _("Starting your server anyway."))
    if isinstance(note, AfterPreemption):
        return _making_room(note.seconds)
    return Message.of(_("We couldn't check availability; starting your server anyway."))


def _room(seconds: int) -> Message:
    """Say that there is room once others have ended, which may take so many seconds."""
    if seconds < _LONG:
        return Message.of(_("There is room for this right now."))
    text = _("There is room for this once others have ended, which can take up to {time}.")
    return Message.of(text.format(time=duration(seconds)))


def _making_room(seconds: int) -> Message:
    if seconds < _LONG:
        return Message.of(_("Making room for your server; this takes a moment longer."))
    text = _("Making room for your server; this can take up to {time}.")
    return Message.of(text.format(time=duration(seconds)))


_LONG = 60
"""Seconds that are worth a number."""

"""What a start will do, on the form before it and on the progress page during it."""

from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.messages.refusals import refusal, why
from gpuspawner.messages.words import Message
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Decision,
    Note,
    Overruled,
    Refuse,
    Start,
    Wait,
)


def preview(decision: Decision) -> Message:
    """Describe what would happen if the server started now."""
    if isinstance(decision, Refuse):
        return refusal(decision)
    if isinstance(decision, Wait):
        text = _("A new machine will start for your server; this usually takes {time}.")
        return _new_machine(text, decision)
    for note in decision.notes:
        if isinstance(note, Overruled):
            return Message.of(why(note.refusal), _("The hub would start your server anyway."))
    if all(isinstance(note, AfterPreemption) for note in decision.notes):
        return Message.of(_("There is room for this right now."))
    return Message.of(_("We can't check availability right now."))


def progress(decision: Start | Wait) -> tuple[Message, ...]:
    """Return the messages about a start in progress; none if it simply starts."""
    if isinstance(decision, Wait):
        text = _("A new machine is starting for you; this usually takes {time}.")
        return (_new_machine(text, decision),)
    # Several unknowns give the same sentence.
    return tuple(dict.fromkeys(_note(note) for note in decision.notes))


def _new_machine(text: str, decision: Wait) -> Message:
    return Message.of(text.format(time=words.minutes(decision.scale_up.minutes)))


def _note(note: Note) -> Message:
    if isinstance(note, Overruled):
        return Message.of(why(note.refusal), _("Starting your server anyway."))
    if isinstance(note, AfterPreemption):
        return Message.of(_("Making room for your server; this takes a moment longer."))
    return Message.of(_("We couldn't check availability; starting your server anyway."))

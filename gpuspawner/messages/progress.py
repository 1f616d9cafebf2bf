"""Messages while a server starts."""

from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.messages.message import Message
from gpuspawner.messages.refusals import why
from gpuspawner.preflight.decision import AfterPreemption, Note, Overruled, Start, Wait


def progress(decision: Start | Wait) -> tuple[Message, ...]:
    """Return the messages about a start; none if it simply starts."""
    if isinstance(decision, Wait):
        return (_new_machine(decision),)
    # Several unknowns give the same sentence.
    return tuple(dict.fromkeys(_note(note) for note in decision.notes))


def _new_machine(decision: Wait) -> Message:
    usual = words.minutes(decision.scale_up.minutes)
    text = _("A new machine is starting for you; this usually takes {time}.")
    return Message.of(text.format(time=usual))


def _note(note: Note) -> Message:
    if isinstance(note, Overruled):
        return Message.of(why(note.refusal), _("Starting your server anyway."))
    if isinstance(note, AfterPreemption):
        text = _("Making room for your server; this takes a moment longer.")
    else:
        text = _("We couldn't check for free GPUs; starting your server anyway.")
    return Message.of(text)

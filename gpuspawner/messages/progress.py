"""What is told to a person while the server starts."""

from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.messages.message import Message
from gpuspawner.messages.refusals import why
from gpuspawner.preflight.decision import AfterPreemption, Note, Overruled, Start, Wait


def progress(decision: Start | Wait) -> tuple[Message, ...]:
    """What is worth knowing about a start; empty for a plain yes."""
    if isinstance(decision, Wait):
        return (_new_machine(decision),)
    # Whatever could not be checked matters to the person only once.
    return tuple(dict.fromkeys(_note(note) for note in decision.notes))


def _new_machine(decision: Wait) -> Message:
    usual = words.minutes(decision.scale_up.minutes)
    text = _("A new machine is being started for you; this usually takes {time}.")
    return Message.of(text.format(time=usual))


def _note(note: Note) -> Message:
    if isinstance(note, Overruled):
        return Message.of(why(note.refusal), _("Your server is tried all the same."))
    if isinstance(note, AfterPreemption):
        text = _("A place is being cleared for your server; that takes a moment longer.")
    else:
        text = _("Whether there is room could not be checked, so your server is simply tried.")
    return Message.of(text)

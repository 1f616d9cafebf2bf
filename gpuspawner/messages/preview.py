"""Whether what is chosen could start, told before anybody presses the button."""

from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.messages.message import Message
from gpuspawner.messages.refusals import refusal, why
from gpuspawner.preflight.decision import AfterPreemption, Decision, Overruled, Refuse, Wait


def preview(decision: Decision) -> Message:
    """The decision of this moment, as an outlook."""
    if isinstance(decision, Refuse):
        return refusal(decision)
    if isinstance(decision, Wait):
        usual = words.minutes(decision.scale_up.minutes)
        text = _("A new machine will be started for this; that usually takes {time}.")
        return Message.of(text.format(time=usual))
    for note in decision.notes:
        if isinstance(note, Overruled):
            return Message.of(why(note.refusal), _("It would be tried all the same."))
    if all(isinstance(note, AfterPreemption) for note in decision.notes):
        return Message.of(_("There is room for this right now."))
    return Message.of(_("Whether there is room for this cannot be told right now."))

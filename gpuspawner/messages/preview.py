"""Whether the chosen options could start, before the user presses the button."""

from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.messages.message import Message
from gpuspawner.messages.refusals import refusal, why
from gpuspawner.preflight.decision import AfterPreemption, Decision, Overruled, Refuse, Wait


def preview(decision: Decision) -> Message:
    """Describe what would happen if the server started now."""
    if isinstance(decision, Refuse):
        return refusal(decision)
    if isinstance(decision, Wait):
        usual = words.minutes(decision.scale_up.minutes)
        text = _("A new machine will start for this; this usually takes {time}.")
        return Message.of(text.format(time=usual))
    for note in decision.notes:
        if isinstance(note, Overruled):
            return Message.of(why(note.refusal), _("The hub would start your server anyway."))
    if all(isinstance(note, AfterPreemption) for note in decision.notes):
        return Message.of(_("There is room for this right now."))
    return Message.of(_("We can't check availability right now."))

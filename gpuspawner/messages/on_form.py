"""What a form that is drawn again tells: above it, at its fields, and what to start instead."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.messages.corrections import correction_at_fields
from gpuspawner.messages.message import Message
from gpuspawner.messages.refusals import refusal, why
from gpuspawner.options import ACCELERATOR, CPU, GPUS, MEMORY, FieldError
from gpuspawner.preflight.decision import Alternative, Reason, Refuse, Room


@dataclass(frozen=True, slots=True)
class OnForm:
    """What is told on a form, to a person whose last try did not start.

    Attributes:
        message: Why, above the form.
        errors: The same at the fields that it is about; none where it is about no field.
        alternatives: What would start right now, each with a button of its own.
    """

    message: Message
    errors: tuple[FieldError, ...] = ()
    alternatives: tuple[Alternative, ...] = ()

    @classmethod
    def of_errors(cls, errors: Sequence[FieldError]) -> "OnForm":
        """Options that could not be read."""
        return cls(correction_at_fields(errors), tuple(errors))

    @classmethod
    def of_refusal(cls, decision: Refuse) -> "OnForm":
        """A refusal; where there are alternatives, their buttons are the way out."""
        message = Message.of(why(decision)) if decision.alternatives else refusal(decision)
        # The API server's no is about the whole server.
        errors = () if decision.rejection else (_at_field(decision),)
        return cls(message, errors, decision.alternatives)


@dataclass(frozen=True, slots=True)
class Button:
    """What is written on the button of an alternative.

    Attributes:
        label: What it starts.
        details: All else that comes with it; may be empty.
    """

    label: str
    details: tuple[str, ...]


def button(alternative: Alternative) -> Button:
    """An alternative in words. Plain text, not yet escaped for HTML."""
    grant = alternative.grant
    if grant.accelerator is None:
        label = _("Start without a GPU")
    else:
        label = _("Start with {gpus}").format(gpus=words.gpus(grant))
    details = (
        grant.image.display_name if grant.image else "",
        words.amount("memory", grant.memory) if grant.memory is not None else "",
        words.cores(grant.cpu) if grant.cpu is not None else "",
    )
    return Button(label, tuple(filter(None, details)))


def _at_field(decision: Refuse) -> FieldError:
    """Where a smaller choice would help, at that field; else at the accelerator."""
    gpus, shortage = decision.gpus, decision.shortage
    now = decision.reason is Reason.BUSY
    if decision.reason in (Reason.BUSY, Reason.IMPOSSIBLE):
        if gpus is not None and _most(gpus, now=now) < gpus.asked:
            most = _most(gpus, now=now)
            return FieldError(GPUS.name if most else ACCELERATOR, _limit(str(most), most, now=now))
        if shortage is not None and shortage.resource in (MEMORY.name, CPU.name):
            most = _most(shortage, now=now)
            amount = words.amount(shortage.resource, most)
            return FieldError(shortage.resource, _limit(amount, most, now=now))
    return FieldError(ACCELERATOR, _("cannot be had right now"))


def _most(room: Room, *, now: bool) -> int:
    return room.most_free if now else room.most


def _limit(amount: str, most: int, *, now: bool) -> str:
    if now:
        text = _("the most on one machine is {amount} right now") if most else _("none is free")
    else:
        text = _("the most on one machine is {amount}") if most else _("no machine here has it")
    return text.format(amount=amount)

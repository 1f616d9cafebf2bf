"""Texts on a form that is drawn again: its message, its errors, its buttons, and lost choices.

Errors in options and earlier choices that are no longer offered are worded here, for requests too.
"""

from collections.abc import Mapping, Sequence

import msgspec
from markupsafe import Markup

from gpuspawner.language import gettext as _
from gpuspawner.language import listed, ngettext, sentence
from gpuspawner.messages import words
from gpuspawner.messages.refusals import refusal, refusal_above_buttons
from gpuspawner.messages.scaling import may_pass
from gpuspawner.messages.words import Message, about
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.options import ACCELERATOR, CPU, GPUS, MEMORY, FieldError
from gpuspawner.offers.user_options import Gone
from gpuspawner.offers.wording import label
from gpuspawner.preflight.decision import Alternative, Reason, Refuse, ResourceRoom


class OnForm(msgspec.Struct, frozen=True):
    """The texts on a form whose options didn't start a server.

    Attributes:
        message: The reason, above the form.
        errors: The reason, at the fields that it is about.
        alternatives: What would start right now, each with its own button.
        profiles: As `alternatives`, if users choose among profiles.
        place: The place that the user would have in line; 0 if there is no line for this server.
        is_refusal: Whether these options were refused; else, nobody has sent any.
        is_foretold: Whether the hub's answers to an open form repeat it for as long as it is true:
            they ask admission only about what the cluster can't hold.
    """

    message: Message
    errors: tuple[FieldError, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    profiles: tuple["ProfileButton", ...] = ()
    place: int = 0
    is_refusal: bool = True
    is_foretold: bool = False

    @property
    def wait(self) -> str:
        """The place, as a sentence; "" without one."""
        return would_be(self.place) if self.place else ""

    def leading_to(self, address: str) -> "OnForm":
        """Return these texts with a link to what explains the message."""
        link = Markup('{} <a class="text-reset" href="{}" target="_blank" rel="noopener">{}</a>')
        said = link.format(self.message.html, address, _("What does this mean?"))
        return msgspec.structs.replace(self, message=Message(self.message.text, said))

    @classmethod
    def of_errors(cls, errors: Sequence[FieldError]) -> "OnForm":
        """Show errors in the options."""
        return cls(correction_at_fields(errors), tuple(errors))

    @classmethod
    def of_refusal(cls, decision: Refuse) -> "OnForm":
        """Show a refusal; buttons for the alternatives replace the sentence about them."""
        message = refusal_above_buttons if decision.alternatives else refusal
        # What the API server or Kueue says is about the whole server, not a field.
        errors = () if decision.rejection or decision.queue else (_at_field(decision),)
        return cls(message(decision), errors, decision.alternatives)


class ProfileButton(msgspec.Struct, frozen=True):
    """The text of an alternative's button, and the options that it starts."""

    label: str
    options: Mapping[str, object]

    @classmethod
    def of(cls, named: str, options: Mapping[str, object]) -> "ProfileButton":
        """Make the button of a profile, named as `profile_named` does."""
        return cls(_("Start {profile}").format(profile=named), options)


class ButtonText(msgspec.Struct, frozen=True):
    """The server that an alternative's button starts, and the other choices that come with it."""

    label: str
    details: tuple[str, ...]


def button(alternative: Alternative) -> ButtonText:
    """Describe an alternative, as plain text that isn't escaped for HTML yet."""
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
    return ButtonText(label, tuple(filter(None, details)))


def _at_field(decision: Refuse) -> FieldError:
    """Return the error at the field where a smaller choice helps, or at the accelerator."""
    gpus, shortage = decision.gpus, decision.shortage
    now = decision.reason is Reason.BUSY
    if decision.apart is not None:
        return FieldError(ACCELERATOR, _("Not where your files are."))
    if decision.held is not None:
        return FieldError(ACCELERATOR, _("Your files are in use."))
    if decision.one_share:
        return FieldError(GPUS.name, _limit(1, now=now))
    if decision.reason in (Reason.BUSY, Reason.IMPOSSIBLE):
        told = None if decision.is_reserved else gpus  # there are more, behind a taint
        if told is not None and (most := _most(told, now=now)) < told.asked:
            return FieldError(GPUS.name if most else ACCELERATOR, _limit(most, now=now))
        if (
            shortage is not None
            and shortage.resource in (MEMORY.name, CPU.name)
            and _most(shortage, now=now) < shortage.asked
        ):
            return FieldError(shortage.resource, _short(decision.grant, shortage, now=now))
    if decision.reason is Reason.IMPOSSIBLE and not may_pass(decision.obstacles):
        return FieldError(ACCELERATOR, _("Not available."))
    return FieldError(ACCELERATOR, _("Not available right now."))


def _short(grant: Grant, shortage: ResourceRoom, *, now: bool) -> str:
    """Name the most there is, unless the server requests another amount than the user chose."""
    most = _most(shortage, now=now)
    if most and shortage.asked == (grant.memory if shortage.resource == MEMORY.name else grant.cpu):
        if not now:
            return words.most(shortage.resource, most)
        text = _("With your other choices, the most is {amount} right now.")
        return text.format(amount=words.amount(shortage.resource, most))
    if now:
        return _("No machine has enough free right now.")
    return _("No machine here has enough.")


def _most(room: ResourceRoom, *, now: bool) -> int:
    return room.most_free if now else room.most


def _limit(most: int, *, now: bool) -> str:
    if now:
        text = _("The most on one machine is {amount} right now.") if most else _("None is free.")
    else:
        text = _("The most on one machine is {amount}.") if most else _("No machine here has it.")
    return text.format(amount=most)


def correction(errors: Sequence[FieldError]) -> Message:
    """Name each wrong option as a request names it, and what is allowed there."""
    said = [about(it.field, it.text) if it.field else sentence(it.text) for it in errors]
    return Message.of(_lead(), *said)


def correction_at_fields(errors: Sequence[FieldError]) -> Message:
    """Do the same for a page that shows each field's error at the field, or else has its label."""
    apart = [it for it in errors if it.label or not it.field]
    return Message.of(
        _lead() if len(apart) == len(errors) else _("Please check the choices marked below."),
        *(about(it.label, it.text) if it.label else sentence(it.text) for it in apart),
    )


def unreadable_body() -> FieldError:
    """Say that a request's body can't be read."""
    return FieldError("", _("The request's body isn't JSON in UTF-8."))


def too_large(levels: int, values: int) -> FieldError:
    """Say that options are nested too deep or have too many values."""
    text = _("The options are more than {levels} levels deep, or have more than {values} values.")
    return FieldError("", text.format(levels=levels, values=f"{values:,}"))


def replaced(gone: Gone) -> str:
    """Say that an earlier choice was replaced, as plain text that isn't escaped for HTML yet."""
    text = _("{option}: {value} is no longer offered, so another choice is selected below.")
    return text.format(option=label(gone.field), value=gone.value)


def gone_from_form(gone: Sequence[Gone]) -> Message:
    """Name the choices of the last start that the form can't select."""
    choices = listed(f"{label(it.field)} {it.value}" for it in gone)
    return Message.of(
        _("Some of your last choices are no longer offered: {choices}.").format(choices=choices),
        _("Please check your choices before you start."),
    )


def gone_at_start(gone: Sequence[Gone], granted: Mapping[str, object]) -> Message:
    """Name what a start with the last choices gets instead."""
    return Message.of(
        _("Some of your last choices are no longer offered, so your server starts with others."),
        *(_instead(it, granted.get(it.field)) for it in gone),
    )


def no_longer_offered() -> Message:
    """Say that some choices of the last start among profiles are no longer offered."""
    return Message.of(
        _("Some of your last choices are no longer offered."), _("Please choose again.")
    )


def _instead(gone: Gone, granted: object) -> str:
    text = _("{option}: {granted} instead of {chosen}.")
    value = _("none") if granted is None else str(granted)
    return text.format(option=label(gone.field), granted=value, chosen=gone.value)


def _lead() -> str:
    return _("Please check your choices.")


def would_be(place: int) -> str:
    """Say the place of somebody who would wait from now on."""
    if place == 1:
        return _("You would be the first in line.")
    text = ngettext(
        "{count} person would be ahead of you.", "{count} people would be ahead of you.", place - 1
    )
    return text.format(count=place - 1)

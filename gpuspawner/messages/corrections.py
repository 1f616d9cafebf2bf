"""Choices that can't be used: errors in options, and earlier choices that are no longer offered."""

from collections.abc import Mapping, Sequence

from gpuspawner.language import gettext as _
from gpuspawner.language import listed, sentence
from gpuspawner.messages.words import Message, about
from gpuspawner.offers.options import FieldError
from gpuspawner.offers.parsing import Gone
from gpuspawner.offers.wording import label


def correction(errors: Sequence[FieldError]) -> Message:
    """Name each wrong option as a request names it, and what is allowed there."""
    said = [about(it.field, it.text) if it.field else sentence(it.text) for it in errors]
    return Message.of(_lead(), *said)


def correction_at_fields(errors: Sequence[FieldError]) -> Message:
    """Do the same for a page that shows each field's error at the field."""
    return Message.of(
        _("Please check the choices marked below.") if any(it.field for it in errors) else _lead(),
        *(sentence(error.text) for error in errors if not error.field),
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
        _("Some of your last choices are no longer offered."),
        _("Please choose again."),
    )


def _instead(gone: Gone, granted: object) -> str:
    text = _("{option}: {granted} instead of {chosen}.")
    value = _("none") if granted is None else str(granted)
    return text.format(option=label(gone.field), granted=value, chosen=gone.value)


def _lead() -> str:
    return _("Please check your choices.")

"""Errors in options, for the person or program that sent them."""

from collections.abc import Sequence

from gpuspawner.language import gettext as _
from gpuspawner.language import sentence
from gpuspawner.messages.message import Message
from gpuspawner.options import FieldError, Gone


def correction(errors: Sequence[FieldError]) -> Message:
    """Name each wrong field, and what is allowed there."""
    sentences = [
        f"{error.field}: {error.text}" if error.field else sentence(error.text) for error in errors
    ]
    return Message.of(_lead(), *sentences)


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
    return text.format(option=gone.field, value=gone.value)


def _lead() -> str:
    return _("Please check your choices.")

"""Options that could not be read, told to whoever sent them."""

from collections.abc import Sequence

from gpuspawner.language import gettext as _
from gpuspawner.messages.message import Message
from gpuspawner.options import FieldError, Gone


def correction(errors: Sequence[FieldError]) -> Message:
    """Name each field and what is allowed there."""
    sentences = [
        f"{error.field}: {error.text}." if error.field else sentence(error.text) for error in errors
    ]
    return Message.of(_lead(), *sentences)


def correction_at_fields(errors: Sequence[FieldError]) -> Message:
    """The same for a page that tells each field's error at the field."""
    return Message.of(
        _("Please check the choices marked below.") if any(it.field for it in errors) else _lead(),
        *(sentence(error.text) for error in errors if not error.field),
    )


def replaced(gone: Gone) -> str:
    """A choice of an earlier time that was replaced. Plain text, not yet escaped for HTML."""
    return _("{option}: {value} is no longer on offer; another one is chosen below.").format(
        option=gone.field, value=gone.value
    )


def sentence(text: str) -> str:
    """What is wrong as a sentence of its own."""
    return f"{text[0].upper()}{text[1:]}" + ("" if text.endswith(".") else ".")


def _lead() -> str:
    return _("Please check your choices.")

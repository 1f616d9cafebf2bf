"""Options that could not be read, told to whoever sent them."""

from collections.abc import Sequence

from gpuspawner.messages.message import Message
from gpuspawner.options import FieldError


def correction(errors: Sequence[FieldError]) -> Message:
    """Name each field and what is allowed there."""
    sentences = [
        f"{error.field}: {error.text}." if error.field else _whole(error) for error in errors
    ]
    return Message.of("Please check your choices.", *sentences)


def _whole(error: FieldError) -> str:
    return f"{error.text[0].upper()}{error.text[1:]}."

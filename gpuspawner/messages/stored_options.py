"""Messages about choices of an earlier start that are no longer offered."""

from collections.abc import Mapping, Sequence

from gpuspawner.language import gettext as _
from gpuspawner.messages.message import Message
from gpuspawner.options import Gone


def gone_from_form(gone: Sequence[Gone]) -> Message:
    """Name the last choices that the form can't select."""
    choices = ", ".join(f"{it.field} {it.value}" for it in gone)
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


def _instead(gone: Gone, granted: object) -> str:
    text = _("{option}: {granted} instead of {chosen}.")
    value = _("none") if granted is None else str(granted)
    return text.format(option=gone.field, granted=value, chosen=gone.value)

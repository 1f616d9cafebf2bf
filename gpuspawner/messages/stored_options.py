"""Choices of an earlier start that are not on offer any more."""

from collections.abc import Mapping, Sequence

from gpuspawner.language import gettext as _
from gpuspawner.messages.message import Message
from gpuspawner.options import Gone


def gone_from_form(gone: Sequence[Gone]) -> Message:
    """What a form that begins with the last choices could not begin with."""
    return Message.of(
        _("Not all of your last choices are on offer any more."),
        _("What you cannot choose now: {choices}.").format(choices=_choices(gone)),
        _("Please look at the choices before you start."),
    )


def gone_at_start(gone: Sequence[Gone], granted: Mapping[str, object]) -> Message:
    """What a start that asked for the last choices gets instead."""
    instead = ", ".join(f"{it.field} {_value(granted.get(it.field))}" for it in gone)
    return Message.of(
        _("Not all of your last choices are on offer any more."),
        _("Your server starts with {instead} in place of {choices}.").format(
            instead=instead, choices=_choices(gone)
        ),
    )


def _choices(gone: Sequence[Gone]) -> str:
    return ", ".join(f"{it.field} {it.value}" for it in gone)


def _value(chosen: object) -> str:
    return _("none") if chosen is None else str(chosen)

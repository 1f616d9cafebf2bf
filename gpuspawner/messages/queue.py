"""What people in line read."""

from markupsafe import Markup, escape

from gpuspawner.language import gettext as _
from gpuspawner.language import ngettext
from gpuspawner.line.estimate import Range
from gpuspawner.messages import words
from gpuspawner.messages.endings import server_named
from gpuspawner.messages.words import Message
from gpuspawner.offers.grant import Grant


def would_be(place: int) -> str:
    """Say the place of somebody who would wait from now on."""
    if place == 1:
        return _("You would be the first in line.")
    text = ngettext(
        "{count} person would be ahead of you.",
        "{count} people would be ahead of you.",
        place - 1,
    )
    return text.format(count=place - 1)


def waits_already(count: int) -> Message:
    """Say that somebody waits for as many servers as one may wait for."""
    text = ngettext(
        "You are already waiting in line for {count} server.",
        "You are already waiting in line for {count} servers.",
        count,
    )
    return Message.of(text.format(count=count), _("Please leave that line first."))


def line_is_full() -> Message:
    """Say that nobody more may wait."""
    return Message.of(_("Too many people are waiting in line right now."), words.retry_or_tell())


def place_given_up() -> Message:
    """Say that somebody has been away for so long that the place is lost."""
    lead = _("You were away, so your place in line was given to others.")
    return Message.of(lead, _("Please start your server again."))


def waits_again() -> Message:
    """Say that somebody else took the room, and that the start waits on at its old place."""
    lead = _("Just before your server started, someone else took the room that it needs.")
    return Message.of(lead, _("You are back at your place in line. Reload the page to see it."))


def waits_for_a_limit(why: str) -> Message:
    """Say that a place in line is kept until policies allow the server."""
    return Message.of(why, _("Your place in line is kept until then."))


def waits_in_line(server: str, address: str) -> Markup:
    """Say that a server waits, and lead to the page of the line."""
    said = escape(_("{server} waits in line.")).format(server=server_named(server))
    return said + Markup(' <a href="{}">{}</a>').format(address, _("Your place in line"))


def stay_here(seconds: float) -> str:
    """Say for how long a place is kept without an open page, for a server that needs one."""
    text = _(
        "Your server starts only while this page is open. If you close it, your place is kept for "
        "{time}."
    )
    return text.format(time=words.duration(round(seconds)))


def may_go() -> str:
    """Say that nobody needs to wait with an open page."""
    return _("You can close this page: your server starts anyway.")


def left_the_line() -> Message:
    """Say that somebody has left the line."""
    return Message.of(_("You have left the line."))


def in_line(
    place: int, grant: Grant, usual: Range | None = None, idle: int = 0, kept: int = 0
) -> Message:
    """Say somebody's place, what they wait for, what is kept, how long it takes, what is idle."""
    waited_for = _("You are waiting for {server}.").format(server=words.gpus(grant))
    rest = waited_for, _kept(kept), _takes(usual) if usual else "", _idle(idle)
    if place == 1:
        return Message.of(_("You are next in line."), *rest)
    text = ngettext(
        "You are in line: {count} person is ahead of you.",
        "You are in line: {count} people are ahead of you.",
        place - 1,
    )
    return Message.of(text.format(count=place - 1), *rest)


def _kept(count: int) -> str:
    """Say how many of the GPUs that somebody waits for are free already; "" if none."""
    text = ngettext(
        "{count} GPU is already being kept free for you.",
        "{count} GPUs are already being kept free for you.",
        count,
    )
    return text.format(count=count) if count else ""


def _idle(count: int) -> str:
    """Say how many servers nobody uses; "" if none."""
    text = ngettext(
        "{count} server that has what you wait for hasn't been used for a while.",
        "{count} servers that have what you wait for haven't been used for a while.",
        count,
    )
    return text.format(count=count) if count else ""


def _takes(usual: Range) -> str:
    """Say a range in whole minutes, or in hours if it is long."""
    low, high = max(1, round(usual.low / 60)), max(1, round(usual.high / 60))
    if high <= 1:
        return _("This usually takes about a minute.")
    if low >= 120:
        low, high = round(low / 60), round(high / 60)
        if low == high:
            return _("This usually takes about {count} hours.").format(count=low)
        return _("This usually takes {low} to {high} hours.").format(low=low, high=high)
    if low == high:
        return _("This usually takes about {count} minutes.").format(count=low)
    return _("This usually takes {low} to {high} minutes.").format(low=low, high=high)

"""What people in line read."""

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from gpuspawner.language import gettext as _
from gpuspawner.language import ngettext
from gpuspawner.messages import words
from gpuspawner.messages.endings import server_named
from gpuspawner.messages.words import Message
from gpuspawner.offers.grant import Grant

if TYPE_CHECKING:
    from gpuspawner.line.usual_waits import UsualWait


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


def place_lost(seconds: float, why: Message) -> Message:
    """Say that a place is lost because no machine could hold the server for so long."""
    text = _("You have lost your place in line: for {time}, no machine could run your server.")
    return Message.of(text.format(time=words.duration(round(seconds))), why.text)


def loses_place(seconds: float, place: int, grant: Grant, profile: str = "") -> Message:
    """Say that no machine can hold a server that waits, and for how long its place is kept."""
    no_machine = _("No machine can run your server right now.")
    kept = _("If that doesn't change within {time}, you lose your place.")
    time = words.duration(round(seconds))
    return Message.of(no_machine, kept.format(time=time), *_place(place, grant, profile))


def waits_again(why: str) -> Message:
    """Say that a start waits on at its old place; without *why*, because others took the room."""
    taken = _("Just before your server started, someone else took the room that it needs.")
    return Message.of(
        why or taken, _("You are back at your place in line. Reload the page to see it.")
    )


def waits_for_a_limit(why: str, place: int, grant: Grant, profile: str = "") -> Message:
    """Say that a place in line is kept until policies allow the server."""
    kept = _("Your place in line is kept until the limit allows your server.")
    return Message.of(why, *_place(place, grant, profile), kept)


def waits_in_line(server: str, address: str) -> Markup:
    """Say that a server waits, and lead to the page of the line."""
    said = escape(_("{server} waits in line.")).format(server=server_named(server))
    # The colour of the hub's announcements suits their text, but not its links.
    link = Markup(' <a class="text-reset" href="{}">{}</a>')
    return said + link.format(address, _("Your place in line"))


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
    place: int,
    grant: Grant,
    profile: str = "",
    usual: "UsualWait | None" = None,
    idle: int = 0,
    kept: int = 0,
) -> Message:
    """Say somebody's place, what they wait for, what is kept, how long it takes, what is idle."""
    rest = _kept(kept), _takes(usual) if usual else "", _idle(idle)
    return Message.of(*_place(place, grant, profile), *rest)


def _place(place: int, grant: Grant, profile: str) -> tuple[str, str]:
    """Say somebody's place, and what they wait for; *profile* is its name, "" for none."""
    server = words.profile_named(profile) if profile else words.gpus(grant)
    if profile and grant.accelerator:
        server = words.profile_choice(server, words.gpus(grant))
    waited_for = _("You are waiting for {server}.").format(server=server)
    if place == 1:
        return _("You are next in line."), waited_for
    text = ngettext(
        "You are in line: {count} person is ahead of you.",
        "You are in line: {count} people are ahead of you.",
        place - 1,
    )
    return text.format(count=place - 1), waited_for


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
        "{count} server with what you're waiting for hasn't been used for a while.",
        "{count} servers with what you're waiting for haven't been used for a while.",
        count,
    )
    return text.format(count=count) if count else ""


def _takes(usual: "UsualWait") -> str:
    """Say a range, and whose waits it is taken from."""
    text = ngettext(
        "In the last day, eight of ten people who waited for this waited {time}.",
        "In the last {count} days, eight of ten people who waited for this waited {time}.",
        usual.days,
    )
    return text.format(count=usual.days, time=_span(usual.low, usual.high))


def _span(low: int, high: int) -> str:
    """Name a range of minutes; long times in hours, which are rounded so that none is left out."""
    low_hours, high_hours = low // 60, -(-high // 60)
    if high < 120:
        if not low:
            return ngettext("a minute at most", "{count} minutes at most", high).format(count=high)
        return _("{low} to {high} minutes").format(low=low, high=high)
    if not low:
        return _("{count} hours at most").format(count=high_hours)
    if low < 120:
        return _("{low} minutes to {high} hours").format(low=low, high=high_hours)
    return _("{low} to {high} hours").format(low=low_hours, high=high_hours)

"""How a server ended that was up, and what has happened to one that still is."""

from datetime import datetime

from markupsafe import Markup, escape

from gpuspawner.language import N_, sentences
from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.messages.causes import way_out
from gpuspawner.troubles.ending import Ending, Mishap
from gpuspawner.troubles.trouble import Kind, Trouble

_CAUSES = {
    Kind.NODE_LOST: N_("{server} ended because its machine was lost."),
    Kind.TAINTED: N_("{server} ended because its machine was taken out of service."),
    Kind.NODE_SHUTDOWN: N_("{server} ended because its machine was taken out of service."),
    Kind.PREEMPTED: N_(
        "{server} ended because it had to make room for one with a higher priority."
    ),
    Kind.QUEUE_PREEMPTED: N_(
        "{server} ended because the cluster's queue gave its place to one with a higher priority."
    ),
    Kind.QUEUE_RECLAIMED: N_(
        "{server} ended because its place was borrowed, and its owners needed it back."
    ),
    Kind.QUEUE_STOPPED: N_("{server} ended because an administrator has stopped its queue."),
    Kind.QUEUE_EVICTED: N_("{server} ended because the cluster's queue ended it."),
    Kind.EVICTED: N_("{server} ended because the cluster needed its place, or its machine."),
    Kind.NODE_PRESSURE: N_("{server} ended because its machine ran short of memory or disk space."),
    Kind.OVER_LIMIT: N_("{server} ended because it used more disk space than it's allowed."),
    Kind.DEVICE_BROKEN: N_("{server} ended because a GPU of its machine is broken."),
    Kind.OUT_OF_MEMORY: N_("{server} ended because it took more memory than it had."),
    Kind.CRASHED: N_("{server} crashed."),
    Kind.FAILED: N_("{server} has failed."),
    Kind.DELETED: N_("{server} ended because something other than the hub deleted it."),
    Kind.STOPPED: N_("{server} ended because an administrator stopped it."),
    Kind.HUB_RESTARTED: N_("{server} didn't start, because the hub was restarted meanwhile."),
}
"""`Kind.ENDED` has no sentence: the owner has stopped the server from inside."""


def ends_in(server: str, seconds: int) -> Markup:
    """Say how long a running server may still run; the default server's name is ""."""
    text = escape(_("{server} ends in {time}. Save your work before then."))
    return text.format(server=server_named(server), time=words.duration(max(60, seconds)))


def last_server_ended(ending: Ending, now: datetime) -> str:
    """Say how the last server ended, on the form for the next one; "" if its owner ended it."""
    lead = _lead(ending)
    said = lead.format(server=_("Your last server"))
    return sentences(said, *_rest(ending, now)) if lead else ""


def server_ended(ending: Ending, now: datetime, server: str) -> Markup:
    """Say the same of a server by its name, on other pages; the default server's name is ""."""
    if not (lead := _lead(ending)):
        return Markup()
    return _of(server, lead, *_rest(ending, now))


def mishap(found: Mishap, server: str, now: datetime) -> Markup:
    """Say what has happened to a server that is up."""
    lead, way = _happened(found)
    lead = lead.replace("{memory}", words.memory(found.memory))
    return _of(server, lead, _ago(found.moment, now) if found.moment else "", way)


def _of(server: str, lead: str, *rest: str) -> Markup:
    """Put the server's name into the first of these sentences."""
    following = sentences(lead, *rest)[len(lead) :]
    return escape(lead).format(server=server_named(server)) + following


def _lead(ending: Ending) -> str:
    """Say the cause, for a format string with the server's name."""
    if ending.kind is Kind.DEADLINE:
        text = _("{server} ended after {time}, the longest that it is allowed to run.")
        return text.replace("{time}", words.duration(ending.seconds))
    if ending.kind is Kind.OUT_OF_MEMORY and ending.memory:
        text = _("{server} ended because it took more than its {memory} of memory.")
        return text.replace("{memory}", words.memory(ending.memory))
    return _(_CAUSES[ending.kind]) if ending.kind in _CAUSES else ""


def _rest(ending: Ending, now: datetime) -> tuple[str, ...]:
    # The kernel ends what takes too much memory, so the last words don't say why.
    quoted = words.last_words(ending.last_words) if ending.kind is Kind.CRASHED else ""
    return quoted, _ago(ending.moment, now), _way_out(ending.kind)


def _way_out(kind: Kind) -> str:
    match kind:
        case Kind.DEADLINE:
            return ""
        case Kind.STOPPED:
            return _("Please ask them why before you start it again.")
        case Kind.HUB_RESTARTED:
            return _("Please start it again.")
        case Kind.CRASHED | Kind.FAILED | Kind.DELETED:
            return _("Please start it again, and tell your administrator if it ends again.")
        case Kind.OVER_LIMIT:
            return _("Please write less to its disk, or ask your administrator.")
        case _:
            return way_out(Trouble(kind))


def _happened(found: Mishap) -> tuple[str, str]:
    match found.kind:
        case Kind.NODE_LOST:
            lead = _("{server} is on a machine that doesn't answer any more.")
            return lead, _("Wait until it does, or stop the server and start it again elsewhere.")
        case Kind.DEVICE_BROKEN:
            lead = _("{server} is on a machine with a broken GPU.")
            return lead, _("Save your work, stop the server, and start it again elsewhere.")
        case Kind.OUT_OF_MEMORY:
            lead = _("{server} was restarted because it took more memory than it has.")
            if found.memory:
                lead = _("{server} was restarted because it took more than its {memory} of memory.")
            return lead, words.choose_more_memory()
        case _:
            lead = _("{server} was restarted because it crashed.")
            return lead, _("Tell your administrator if it happens again.")


def _ago(moment: datetime, now: datetime) -> str:
    seconds = round((now - moment).total_seconds())
    if seconds < 60:
        return ""
    return _("That was {time} ago.").format(time=words.duration(seconds))


def server_named(server: str) -> Markup:
    """Name a server; the default one's name is ""."""
    return Markup("<strong>{}</strong>").format(server or _("Your default server"))

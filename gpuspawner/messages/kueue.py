"""What people read of Kueue's queues: their place, what is in use, and why a queue says no."""

from contextvars import Context

from markupsafe import Markup, escape

from gpuspawner.kube.quoting import one_line
from gpuspawner.language import gettext as _
from gpuspawner.language import ngettext, sentences
from gpuspawner.messages import words
from gpuspawner.messages.endings import server_named
from gpuspawner.messages.words import Message
from gpuspawner.preflight.kueue import Closed, Never, PlaceInQueue, WhyClosed


def in_queue(place: PlaceInQueue) -> Message:
    """Say where a server waits, how many are ahead, and what is in use."""
    stopped = _("The queue is stopped right now; your server keeps its place.")
    return Message.of(_place(place), stopped if place.is_stopped else _use(place))


def waits_in_queue(server: str) -> Markup:
    """Say that a server waits."""
    return escape(_("{server} waits in the cluster's queue.")).format(server=server_named(server))


def decides(place: PlaceInQueue) -> Message:
    """Say of a server that hasn't been started yet which queue it goes through, and who waits."""
    text = _("The queue {queue} decides when your server starts.").format(queue=_name(place.queue))
    return Message.of(text, _waiting(place.ahead))


def why(no: Never | Closed) -> str:
    """Say why a queue doesn't take a server."""
    queue = _name(no.queue)
    match no:
        case Never(resource=resource, asked=asked, most=0):
            text = _("Your server needs {asked}, but the queue {queue} has none for it.")
            return text.format(asked=words.amount_named(resource, asked), queue=queue)
        case Never(resource=resource, asked=asked, most=most):
            text = _("Your server needs {asked}, but the queue {queue} can give {most} at most.")
            figure = words.figure(resource, most)
            return text.format(asked=words.amount_named(resource, asked), queue=queue, most=figure)
        case Closed(why=WhyClosed.NO_QUEUE):
            return _("The cluster has no queue {queue} for your server.").format(queue=queue)
        case Closed(why=WhyClosed.NO_POOL):
            return _("The queue {queue} has no quota to give.").format(queue=queue)
        case Closed(why=WhyClosed.INACTIVE):
            return _("The queue {queue} can't take servers right now.").format(queue=queue)
        case _:
            return _("The queue {queue} is stopped right now.").format(queue=queue)


def way_out(no: Never | Closed) -> str:
    """Say what helps if nothing else can start."""
    if isinstance(no, Never):
        return words.ask()
    may_pass = no.why in (WhyClosed.STOPPED, WhyClosed.INACTIVE)
    return words.retry_or_tell() if may_pass else words.tell()


def explain(no: Never | Closed) -> str:
    """Say the same for administrators, in the terms of Kueue and always in English."""
    return Context().run(_explain, no)  # outside the context that has the user's language


def _explain(no: Never | Closed) -> str:
    queue = one_line(no.queue)
    match no:
        case Never(resource=resource):
            asked, most = words.amount(resource, no.asked), words.figure(resource, no.most)
            return f"the LocalQueue {queue} could never give {asked}, but at most {most}"
        case Closed(why=WhyClosed.NO_QUEUE):
            return f"there is no LocalQueue {queue} in the pod's namespace"
        case Closed(why=WhyClosed.NO_POOL):
            return f"the ClusterQueue of the LocalQueue {queue} doesn't exist"
        case Closed(why=WhyClosed.INACTIVE, details=details):
            return f"the ClusterQueue of the LocalQueue {queue} isn't active: {one_line(details)}"
        case _:
            return f"the LocalQueue {queue}, or its ClusterQueue, has a stopPolicy"


def _place(place: PlaceInQueue) -> str:
    queue = _name(place.queue)
    if place.ahead is None:
        return _("Your server waits in the queue {queue}.").format(queue=queue)
    if not place.ahead:
        return _("Your server is next in the queue {queue}.").format(queue=queue)
    text = ngettext(
        "Your server waits in the queue {queue}: {count} other is ahead of it.",
        "Your server waits in the queue {queue}: {count} others are ahead of it.",
        place.ahead,
    )
    return text.format(queue=queue, count=place.ahead)


def _waiting(count: int | None) -> str:
    if count is None:
        return ""
    if not count:
        return _("Nobody is waiting there right now.")
    text = ngettext(
        "{count} is waiting there already.", "{count} are waiting there already.", count
    )
    return text.format(count=count)


def _use(place: PlaceInQueue) -> str:
    if not place.resource:
        return ""
    pool, used, nominal = _name(place.pool), place.used, place.nominal
    if used > nominal:  # it has borrowed the rest, or its quota was larger
        text = _("{pool} uses {used}, and its own quota is {nominal}.")
        return text.format(
            pool=pool,
            used=words.amount_named(place.resource, used),
            nominal=words.figure(place.resource, nominal),
        )
    text = _("{pool} uses {used} of its {nominal}.")
    use = text.format(
        pool=pool,
        used=words.figure(place.resource, used),
        nominal=words.amount_named(place.resource, nominal),
    )
    return sentences(use, _("Others have borrowed the rest.") if place.is_lent else "")


def _name(name: str) -> str:
    return one_line(name, 63)

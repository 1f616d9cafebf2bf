"""What becomes of many equal servers, for administrators. Only `capacity` and its page load it."""

from collections.abc import Iterator

from gpuspawner.kube.quoting import one_line
from gpuspawner.language import gettext as _
from gpuspawner.language import ngettext, sentences
from gpuspawner.messages.scaling import no_more
from gpuspawner.messages.words import about, amount_named, figure, memory, minutes
from gpuspawner.preflight.capacity import Headroom, NewNodes, Pull, ServerLimit
from gpuspawner.preflight.decision import ResourceRoom
from gpuspawner.scaling.outlook import Obstacle, WhyNoNode


def outcomes(found: Headroom) -> Iterator[tuple[int, str]]:
    """Yield what becomes of how many servers; together they are all."""
    rows = (
        (found.fits_now, _starts_now(found.preempted)),
        *((it.servers, _starts_later(it)) for it in found.new_nodes),
        (found.perhaps, _unknown(found)),
        (found.without_room, _without_room(found)),
        (found.servers - found.allowed, _("aren't allowed")),
    )
    yield from (it for it in rows if it[0])


def _starts_now(preempted: int) -> str:
    if not preempted:
        return _("start on the nodes that exist")
    return ngettext(
        "start on the nodes that exist, once {count} pod of lower priority has ended",
        "start on the nodes that exist, once {count} pods of lower priority have ended",
        preempted,
    ).format(count=preempted)


def _starts_later(it: NewNodes) -> str:
    text = ngettext(
        "start once the pool {pool} has added {count} node",
        "start once the pool {pool} has added {count} nodes",
        it.nodes,
    ).format(pool=one_line(it.pool), count=it.nodes)
    if it.minutes is None:
        return text
    return _("{what}, which takes {time}").format(what=text, time=minutes(it.minutes))


def _unknown(found: Headroom) -> str:
    why = "; ".join(found.unknown) or _("a pool may add nodes that it hasn't shown yet")
    return _("may start, but nobody knows: {why}").format(why=one_line(why))


def _without_room(found: Headroom) -> str:
    why = _("no node can hold them") if found.short_of is None else _short(found.short_of)
    return _("find no room: {why}").format(why=why)


def _short(it: ResourceRoom) -> str:
    text = _("each asks for {asked}, and no node that takes them has more than {free}")
    asked, free = amount_named(it.resource, it.asked), figure(it.resource, it.most_free)
    return text.format(asked=asked, free=free)


def remarks(found: Headroom, queue: str, unjudged_quotas: str) -> Iterator[str]:
    """Yield what else there is to know: limits, pods that come first, images, what isn't judged."""
    yield from map(_limit, found.limits)
    # That a pool has other machines says nothing of where these servers could run.
    yield from (_adds_none(it) for it in found.obstacles if it.why is not WhyNoNode.NO_SUCH_MACHINE)
    if found.ahead:
        text = _("Pods that wait already and come first: {count}.")
        yield text.format(count=found.ahead)
    yield from map(_pull, found.pulls)
    if queue:
        text = _("The servers wait in {queue}; Kueue's quota isn't judged.")
        yield text.format(queue=one_line(queue))
    if unjudged_quotas:
        text = _("Quotas can't be judged: {why}")
        yield text.format(why=one_line(unjudged_quotas))


def _limit(it: ServerLimit) -> str:
    if it.policy:
        text = _("The policy {policy} allows {count}. It says: {said}")
    else:
        text = _("A ResourceQuota allows {count}. It says: {said}")
    return text.format(policy=one_line(it.policy), count=it.allows, said=one_line(it.message))


def _adds_none(it: Obstacle) -> str:
    detail = f"({one_line(it.detail)})" if it.detail else ""
    said = sentences(no_more([it]), detail)
    return about(_("Pool {pool}").format(pool=one_line(it.pool)), said) if it.pool else said


def _pull(it: Pull) -> str:
    text = ngettext(
        "To be pulled on {count} node: {image}.",
        "To be pulled on {count} nodes: {image}.",
        it.nodes,
    )
    size = f" ({memory(it.size)})" if it.size else ""
    return text.format(count=it.nodes, image=f"{one_line(it.image)}{size}")

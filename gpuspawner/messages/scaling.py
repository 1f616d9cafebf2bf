"""Nodes that can still come: what to expect, and why none comes."""

from collections.abc import Sequence

from gpuspawner.kube.quoting import one_line
from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Obstacle, WhyNoNode

# The first that applies says most: it is about a pool whose machines would help.
_ORDER = (
    WhyNoNode.TAKEN,
    WhyNoNode.STOCK_OUT,
    WhyNoNode.LIMIT,
    WhyNoNode.AT_MAXIMUM,
    WhyNoNode.IN_VAIN,
    WhyNoNode.NO_ANSWER,
    WhyNoNode.REFUSED,
    WhyNoNode.NO_SUCH_MACHINE,
)


def may_pass(obstacles: Sequence[Obstacle]) -> bool:
    """Whether a machine that would help may be added later."""
    return any(obstacle.why is not WhyNoNode.NO_SUCH_MACHINE for obstacle in obstacles)


def takes(scale_up: CanScaleUp | MayScaleUp | None) -> str:
    """Say how long a new machine usually takes; empty if nobody knows."""
    if scale_up is None or scale_up.minutes is None:
        return ""
    return words.minutes(scale_up.minutes)


def no_more(obstacles: Sequence[Obstacle]) -> str:
    """Say why no machine can be added; empty if the cluster doesn't grow."""
    found = {obstacle.why for obstacle in obstacles}
    match next((why for why in _ORDER if why in found), None):
        case None:
            return ""
        case WhyNoNode.TAKEN:
            return _(
                "The machines that can still be added are for servers that are already waiting."
            )
        case WhyNoNode.STOCK_OUT:
            return _("The cloud provider has no such machine available right now.")
        case WhyNoNode.LIMIT:
            return _("No more machines can be added: a limit is reached.")
        case WhyNoNode.AT_MAXIMUM:
            return _("No more machines can be added: their number is at its maximum.")
        case WhyNoNode.IN_VAIN:
            return _("A new machine was expected, but it didn't come in time.")
        case WhyNoNode.NO_ANSWER:
            return _("The cluster didn't add a machine while a server like this waited for one.")
        case WhyNoNode.REFUSED:
            return _("The cluster can't add a machine for this right now.")
        case WhyNoNode.NO_SUCH_MACHINE:
            return _("The cluster can't add a machine that would hold your server.")


def explain_obstacles(obstacles: Sequence[Obstacle]) -> str:
    """Name each pool and why it adds no node, for administrators; empty if there are none."""
    return "; ".join(map(_explained, obstacles))


def _explained(obstacle: Obstacle) -> str:
    pool = f"pool {one_line(obstacle.pool)}" if obstacle.pool else "no new node"
    nodes = "" if obstacle.nodes is None else f", {obstacle.nodes} node(s)"
    detail = f" ({one_line(obstacle.detail)})" if obstacle.detail else ""
    return f"{pool}: {obstacle.why}{nodes}{detail}"

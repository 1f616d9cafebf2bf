"""Nodes that can still come: what to expect, and why none comes."""

from collections.abc import Sequence

from gpuspawner.kube.quoting import one_line
from gpuspawner.language import N_
from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Obstacle, WhyNoNode

# The first that applies says most: it is about a pool whose machines would help.
_NO_MORE = {
    WhyNoNode.TAKEN: N_(
        "The machines that can still be added are for servers that are already waiting."
    ),
    WhyNoNode.QUOTA: N_(
        "No more machines can be added: the cluster's quota at the cloud provider is used up. "
        "Only an administrator can have it raised."
    ),
    WhyNoNode.STOCK_OUT: N_("The cloud provider has no such machine available right now."),
    WhyNoNode.LIMIT: N_("No more machines can be added: a limit is reached."),
    WhyNoNode.AT_MAXIMUM: N_("No more machines can be added: their number is at its maximum."),
    WhyNoNode.IN_VAIN: N_("A new machine was expected, but it didn't come in time."),
    WhyNoNode.NO_ANSWER: N_(
        "The cluster didn't add a machine while a server like this waited for one."
    ),
    WhyNoNode.REFUSED: N_("The cluster can't add a machine for this right now."),
    WhyNoNode.NO_SUCH_MACHINE: N_("The cluster can't add a machine that would hold your server."),
}


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
    return next((_(text) for why, text in _NO_MORE.items() if why in found), "")


def explain_obstacles(obstacles: Sequence[Obstacle]) -> str:
    """Name each pool and why it adds no node, for administrators; empty if there are none."""
    return "; ".join(map(_explained, obstacles))


def _explained(obstacle: Obstacle) -> str:
    pool = f"pool {one_line(obstacle.pool)}" if obstacle.pool else "no new node"
    nodes = "" if obstacle.nodes is None else f", {obstacle.nodes} node(s)"
    detail = f" ({one_line(obstacle.detail)})" if obstacle.detail else ""
    return f"{pool}: {obstacle.why}{nodes}{detail}"

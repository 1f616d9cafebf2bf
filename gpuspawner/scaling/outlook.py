"""Whether a node that would hold a pod can still come: known, known not, or not known."""

from enum import StrEnum

import msgspec


class Source(StrEnum):
    """Who says it."""

    DECLARED = "scale_up"
    """The administrator, in the configuration."""
    KARPENTER = "Karpenter"
    CLUSTER_AUTOSCALER = "Cluster Autoscaler"
    NODES = "the nodes"
    """Labels and names that clouds and autoscalers give to nodes."""
    UNREAD = "Karpenter's objects, which the hub can't read"
    UNREAD_STATUS = "Cluster Autoscaler's status, which is old or can't be read"
    CONFIGURATION = "GPUSpawner.autoscaling"


class WhyNoNode(StrEnum):
    """Why a pool adds no node for a pod."""

    AT_MAXIMUM = "at-maximum"
    """It has as many nodes as it may have."""
    LIMIT = "limit"
    """A limit on resources is reached: Karpenter's, Cluster Autoscaler's, or of addresses."""
    QUOTA = "quota"
    """The cloud provider allows the cluster no more of such machines."""
    STOCK_OUT = "stock-out"
    """The cloud provider couldn't deliver such a machine, so the autoscaler waits."""
    NO_SUCH_MACHINE = "no-such-machine"
    """None of its machines would hold the pod."""
    TAKEN = "taken"
    """Servers that already wait take everything that can still come."""
    REFUSED = "refused"
    """The autoscaler said no, for a reason that isn't one of the above."""
    NO_ANSWER = "no-answer"
    """A pod of the same kind was pending as long as a trial takes, and no autoscaler reacted."""
    IN_VAIN = "in-vain"
    """A node was on its way, but didn't come in time, or doesn't hold the pod."""


class Obstacle(msgspec.Struct, frozen=True):
    """Why one pool, or all of them, add no node for a pod.

    Attributes:
        pool: As its autoscaler names it; "" for all.
        detail: The autoscaler's own text, for administrators.
        nodes: How many nodes the pool has, if that is the reason.
    """

    why: WhyNoNode
    pool: str = ""
    detail: str = ""
    nodes: int | None = None


class CanScaleUp(msgspec.Struct, frozen=True):
    """A node that would hold the pod can come, and isn't needed for a server that waits already.

    Attributes:
        nodes: How many nodes the pool has now, including those on their way.
        max_nodes: The most that it may have; None if it has no such limit.
        minutes: How many minutes a new node usually takes; None if nobody has said or seen it.
        pool: As its autoscaler names it.
    """

    nodes: int
    max_nodes: int | None
    minutes: float | None
    source: Source = Source.DECLARED
    pool: str = ""


class MayScaleUp(msgspec.Struct, frozen=True):
    """A node may come, but nobody knows; only a pod shows it.

    Attributes:
        source: Why a node may come at all.
        minutes: As in `CanScaleUp`.
        on_its_way: Whether a node is coming that may hold the pod.
        is_listed: Whether Cluster Autoscaler lists such a pool, and as healthy.
    """

    source: Source
    minutes: float | None = None
    on_its_way: bool = False
    is_listed: bool = False


class CannotScaleUp(msgspec.Struct, frozen=True):
    """No node can come; without obstacles, because there is no autoscaler."""

    obstacles: tuple[Obstacle, ...] = ()


Outlook = CanScaleUp | MayScaleUp | CannotScaleUp

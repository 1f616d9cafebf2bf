"""The preflight's decisions, as facts; `gpuspawner.messages` makes the sentences.

A `Decision` is a `Start`, a `Wait` or a `Refuse`. No fact names another user or another user's pod.
"""

from collections.abc import Collection
from enum import StrEnum

import msgspec

from gpuspawner.cluster.health import Health
from gpuspawner.offers.grant import Grant
from gpuspawner.preflight.kueue import Closed, Never, PlaceInQueue
from gpuspawner.preflight.rejection import OutOfRange, OverQuota, QuotaUncounted, Rejection
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Obstacle
from gpuspawner.scheduling.node_info import NodeInfo

_ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


class Apart(msgspec.Struct, frozen=True):
    """The nodes that reach a pod's volumes, and others that would hold the pod without them.

    Attributes:
        files, room: Names of zones, or of nodes if the zones aren't different; no node may reach
            the volumes.
        is_free: Whether there is room at this moment.
    """

    files: tuple[str, ...]
    room: tuple[str, ...]
    are_zones: bool
    is_free: bool = False

    @classmethod
    def of(
        cls, files: Collection[NodeInfo], room: Collection[NodeInfo], *, is_free: bool = False
    ) -> "Apart":
        """Name the places."""
        here, there = ({_zone(node) for node in nodes} for nodes in (files, room))
        are_zones = bool(here) and "" not in here | there and here.isdisjoint(there)
        if not are_zones:
            here, there = ({node.name for node in nodes} for nodes in (files, room))
        return cls(tuple(sorted(here)), tuple(sorted(there)), are_zones, is_free)


def _zone(node: NodeInfo) -> str:
    return next((node.labels[it] for it in _ZONE if it in node.labels), "")


class Reason(StrEnum):
    """Why a pod was refused. The list is short and fixed, so it can be a Prometheus label."""

    BUSY = "busy"
    """It would fit if other pods had ended."""
    TRY_AGAIN = "try-again"
    """Other servers were starting, and it didn't become clear in time whether it still fits."""
    TAKEN = "taken"
    """It had room, but a pod that this hub didn't start took it before the pod was bound."""
    AWAY = "away"
    """The nodes that could hold it are cordoned, not ready or have unhealthy GPUs."""
    IMPOSSIBLE = "impossible"
    """No node can ever hold it: neither one that exists, nor one that can still come."""
    QUOTA = "quota"
    """A ResourceQuota of its namespace leaves too little, or its queue could never give so much."""
    LIMIT_RANGE = "limit-range"
    """A LimitRange of its namespace doesn't allow so much, or so little."""
    NOT_ADMITTED = "not-admitted"
    """The API server or its queue rejects it, for a reason that an administrator must fix."""


class HeldBy(StrEnum):
    """Who has a volume that only one pod can use at a time."""

    OWN = "own"
    """A server of the same user."""
    OTHER = "other"


class Difference(StrEnum):
    """How an alternative differs from the request."""

    FEWER_GPUS = "fewer_gpus"
    LESS_MEMORY = "less_memory"
    LESS_CPU = "less_cpu"
    OTHER_ACCELERATOR = "other_accelerator"
    NO_GPU = "no_gpu"


class AfterPreemption(msgspec.Struct, frozen=True):
    """The scheduler ends pods of lower priority first (placeholders, say).

    Attributes:
        seconds: How long these may take to end.
    """

    seconds: int = 0


class UnknownRules(msgspec.Struct, frozen=True):
    """The evaluation doesn't know rules that decide about this pod.

    Attributes:
        facts: The rules, for people who know Kubernetes; never empty.
    """

    facts: tuple[str, ...]


class ViewNotLive(msgspec.Struct, frozen=True):
    """The view of the cluster couldn't be trusted, so nothing was judged.

    Attributes:
        health: Never `Live`.
    """

    health: Health


class Overruled(msgspec.Struct, frozen=True):
    """The preflight refused the pod, but the administrator has set refusals to warnings only."""

    refusal: "Refuse"


class InQueue(msgspec.Struct, frozen=True):
    """The pod goes through a queue of Kueue, at once or later, and only then to a node.

    Attributes:
        nodes: What the nodes alone say of the pod at this moment.
    """

    queue: PlaceInQueue
    nodes: "Decision"


Note = AfterPreemption | UnknownRules | ViewNotLive | Overruled | InQueue


class ResourceRoom(msgspec.Struct, frozen=True):
    """How much of one resource a set of nodes has for a pod.

    Units: millicores for ``cpu``, bytes for ``memory`` and ``ephemeral-storage``, else whole
    numbers.

    Attributes:
        resource: As the pod names it: ``nvidia.com/gpu``, ``memory``, ``cpu``, ``pods``.
        most_free: The largest free amount on one node; 0 if all nodes are over-committed.
        free: The free amount on all nodes together.
        most: The largest allocatable amount of one node.
        total: The allocatable amount of all nodes together.
    """

    resource: str
    asked: int
    most_free: int
    free: int
    most: int
    total: int


class TaintedNodes(msgspec.Struct, frozen=True):
    """A taint that keeps the pod off nodes that its selectors allow.

    Attributes:
        value: "" if it has none.
        effect: ``NoSchedule`` or ``NoExecute``.
        large: How many of these nodes have as much as the pod requests, in use or not.
    """

    key: str
    value: str
    effect: str
    nodes: int
    large: int = 0


class Alternative(msgspec.Struct, frozen=True):
    """A choice near to the request that fits now.

    Attributes:
        differences: How it differs from the request; never empty.
        gpus: How many of its GPUs there are; None for a choice without GPUs.
        is_at_hand: Whether a node on which it fits has its images already.
    """

    grant: Grant
    differences: tuple[Difference, ...]
    gpus: ResourceRoom | None
    is_at_hand: bool = False


class Start(msgspec.Struct, frozen=True):
    """The hub may create the pod.

    Attributes:
        notes: What is less than certain; empty for a plain yes.
    """

    grant: Grant
    notes: tuple[Note, ...] = ()

    @property
    def seconds_to_make_room(self) -> int | None:
        """How long pods of lower priority may take to end; None if more than that is uncertain."""
        notes = [it for it in self.notes if not isinstance(it, InQueue)]  # Kueue comes before
        seconds = [it.seconds for it in notes if isinstance(it, AfterPreemption)]
        return max(seconds, default=0) if len(seconds) == len(notes) else None

    @property
    def queue(self) -> PlaceInQueue | None:
        """The queue that decides when the pod may start; None if there is none."""
        return next((it.queue for it in self.notes if isinstance(it, InQueue)), None)


class Wait(msgspec.Struct, frozen=True):
    """The hub may create the pod; it stays Pending until a new node has joined.

    Attributes:
        scale_up: If it is only known that a node may come, the start is a trial: the autoscaler's
            answer to the pod decides.
    """

    grant: Grant
    scale_up: CanScaleUp | MayScaleUp


class Refuse(msgspec.Struct, frozen=True):
    """The server doesn't start: its pod would stay Pending, or the API server would reject it.

    Usually the hub hasn't created the pod yet. If it waits already, the hub deletes it.

    Candidates are the nodes that the pod's selectors and tolerations allow and that aren't away.

    Attributes:
        gpus: How many of the requested GPUs the candidates have; None for a choice without GPUs.
        shortage: The first resource (GPU, memory, CPU, then the rest) that no candidate has enough
            of. It counts only candidates that have enough of the resources before it. None if
            another rule than resources is in the way.
        taints: Untolerated taints on nodes that the selectors allow and that have the devices:
            those of large enough nodes first, then the most frequent ones.
        away: The nodes that it would fit on if they weren't cordoned, not ready or unhealthy.
        alternatives: At most three, nearest first.
        obstacles: Why no node can come for the pod, by pool; empty if the cluster doesn't grow.
        scheduler_message: kube-scheduler's own text for this pod, for administrators.
        rejection: Why the API server rejects the pod; None if it doesn't.
        after_admission: Whether the API server's admission was asked first.
        in_line: How many people wait for any of the same nodes.
        queue: Why its queue of Kueue doesn't take it; None if it does, or if it has none.
        one_share: Whether the nodes share GPUs, and give a container only one share.
        apart: Where its volumes are, if only these keep it off all nodes with room for it.
        held: Who has one of its volumes, if only that is in the way.
    """

    grant: Grant
    reason: Reason
    gpus: ResourceRoom | None = None
    shortage: ResourceRoom | None = None
    taints: tuple[TaintedNodes, ...] = ()
    candidates: int = 0
    away: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    scheduler_message: str = ""
    rejection: Rejection | None = None
    after_admission: bool = False
    in_line: int = 0
    queue: Never | Closed | None = None
    one_share: bool = False
    apart: Apart | None = None
    held: HeldBy | None = None

    @property
    def is_reserved(self) -> bool:
        """Whether no candidate is large enough, and a taint keeps the pod off a node that is."""
        short = self.shortage
        lacks = not self.candidates or (short is not None and short.most < short.asked)
        return lacks and self.reason is Reason.IMPOSSIBLE and any(it.large for it in self.taints)


Decision = Start | Wait | Refuse


def rejected(grant: Grant, rejection: Rejection) -> Refuse:
    """Return the refusal for a pod that the API server rejects."""
    match rejection.cause:
        case OverQuota() | QuotaUncounted():
            reason = Reason.QUOTA
        case OutOfRange():
            reason = Reason.LIMIT_RANGE
        case _:
            reason = Reason.NOT_ADMITTED
    return Refuse(grant, reason, rejection=rejection, after_admission=True)


def on_nodes(decision: Decision) -> Decision:
    """Return what the nodes alone say of a pod, whatever its queue does with it."""
    notes = decision.notes if isinstance(decision, Start) else ()
    return next((it.nodes for it in notes if isinstance(it, InQueue)), decision)

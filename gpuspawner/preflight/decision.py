"""What the preflight decided, as frozen facts; `gpuspawner.messages` makes the sentences.

A `Decision` is one of three:

- `Start`: the pod may be created; notes tell what is less than certain about it.
- `Wait`: the pod may be created and stays Pending until a node has come.
- `Refuse`: no pod is created, and the facts say why and what fits instead.

No fact names another user or another user's pod.
"""

from dataclasses import dataclass
from enum import StrEnum

from gpuspawner.admission.rejection import Rejection
from gpuspawner.cluster.health import Health
from gpuspawner.policy import Grant
from gpuspawner.scaling.declared import CanScaleUp


class Reason(StrEnum):
    """Why a pod was refused: a short fixed list, fit for a Prometheus label."""

    BUSY = "busy"
    """It would fit if other pods had ended."""
    TRY_AGAIN = "try-again"
    """Others were starting at the same moment and it did not become clear in time who fits."""
    TAKEN = "taken"
    """It had a place, and somebody who does not ask here took it before the pod was bound."""
    AWAY = "away"
    """The nodes that could hold it are cordoned, not ready or have unhealthy GPUs."""
    IMPOSSIBLE = "impossible"
    """No present node can ever hold it."""
    QUOTA = "quota"
    """A ResourceQuota of its namespace leaves too little."""
    LIMIT_RANGE = "limit-range"
    """A LimitRange of its namespace does not allow so much, or so little."""
    NOT_ADMITTED = "not-admitted"
    """The API server does not take it, for a reason that is an administrator's."""


class Difference(StrEnum):
    """In what an alternative differs from what was asked."""

    FEWER_GPUS = "fewer_gpus"
    LESS_MEMORY = "less_memory"
    LESS_CPU = "less_cpu"
    OTHER_ACCELERATOR = "other_accelerator"
    NO_GPU = "no_gpu"


@dataclass(frozen=True, slots=True)
class AfterPreemption:
    """Pods of lower priority (placeholders, say) are ended first."""


@dataclass(frozen=True, slots=True)
class UnknownRules:
    """Rules that the evaluation does not know decide about this pod.

    Attributes:
        facts: What they are, for people who know Kubernetes; never empty.
    """

    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ViewNotLive:
    """The picture of the cluster could not be trusted, so nothing was judged.

    Attributes:
        health: What was wrong with it; never `Live`.
    """

    health: Health


@dataclass(frozen=True, slots=True)
class Overruled:
    """It would have been refused, had the administrator not asked only to be warned.

    Attributes:
        refusal: What would have been told.
    """

    refusal: "Refuse"


Note = AfterPreemption | UnknownRules | ViewNotLive | Overruled


@dataclass(frozen=True, slots=True)
class Room:
    """How much of one resource there is for a pod, on a set of nodes.

    Units: millicores for ``cpu``, bytes for ``memory`` and ``ephemeral-storage``, else whole
    numbers.

    Attributes:
        resource: As the pod names it: ``nvidia.com/gpu``, ``memory``, ``cpu``, ``pods``.
        asked: What the pod requests.
        most_free: The most that is free on one node; 0 where nodes are over-committed.
        free: What is free on all the nodes together.
        most: The most that one node has, were it empty (allocatable).
        total: What all the nodes have, were they empty.
    """

    resource: str
    asked: int
    most_free: int
    free: int
    most: int
    total: int


@dataclass(frozen=True, slots=True)
class TaintedNodes:
    """A taint that keeps the pod off nodes that its selectors allow.

    Attributes:
        key: The taint's key.
        value: The taint's value, "" for none.
        effect: ``NoSchedule`` or ``NoExecute``.
        nodes: How many nodes carry it.
    """

    key: str
    value: str
    effect: str
    nodes: int


@dataclass(frozen=True, slots=True)
class Alternative:
    """Something near to what was asked that fits now.

    Attributes:
        grant: What would be granted for it: policy has agreed to it.
        differences: In what it differs from what was asked; never empty.
        gpus: How many of its GPUs there are; None for a choice without GPUs.
    """

    grant: Grant
    differences: tuple[Difference, ...]
    gpus: Room | None


@dataclass(frozen=True, slots=True)
class Start:
    """The pod may be created.

    Attributes:
        grant: What was granted by policy and judged.
        notes: What is less than certain; empty for a plain yes.
    """

    grant: Grant
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """The pod may be created and will be Pending until a new node has come.

    Attributes:
        grant: What was granted by policy and judged.
        scale_up: What can still come, and how long that takes.
    """

    grant: Grant
    scale_up: CanScaleUp


@dataclass(frozen=True, slots=True)
class Refuse:
    """No pod is created: it would stay Pending, or the API server would not take it.

    Candidates are the nodes that the pod's selectors and tolerations allow and that are not away.

    Attributes:
        grant: What was granted by policy and judged.
        reason: Why, as a slug.
        gpus: How many of the asked GPUs the candidates have; None for a choice without GPUs.
        shortage: The first of GPU, memory, CPU and the rest of which no candidate has enough,
            counted on those candidates alone that have enough of the ones before it; None where
            resources are not what is in the way.
        taints: Untolerated taints on nodes that the selectors allow, most frequent first.
        candidates: How many candidates there are.
        away: How many nodes it would fit on, were they not cordoned, not ready or unhealthy.
        alternatives: At most three things that fit now, nearest first.
        view_age: Seconds since the API server last confirmed the picture that was judged.
        scheduler_message: kube-scheduler's own text for this pod, for administrators.
        rejection: Why the API server does not take it; None where it was not its no.
        after_admission: Whether the API server's admission was asked first.
    """

    grant: Grant
    reason: Reason
    gpus: Room | None = None
    shortage: Room | None = None
    taints: tuple[TaintedNodes, ...] = ()
    candidates: int = 0
    away: int = 0
    alternatives: tuple[Alternative, ...] = ()
    view_age: float = 0.0
    scheduler_message: str = ""
    rejection: Rejection | None = None
    after_admission: bool = False

    @property
    def http_status(self) -> int:
        """The status of a REST answer.

        Always 409 (Conflict): the request is well formed and the cluster's present state is in
        its way. It is below 500, so that the hub never counts it as a failure of its own.
        """
        return 409


Decision = Start | Wait | Refuse

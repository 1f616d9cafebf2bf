"""The verdict of an evaluation: the outcome, and the reasons on each node.

Its messages are the scheduler's, word for word (v1.36). Sources: `FitError.Error` in
framework/types.go, `RunPostFilterPlugins`, and the PostFilter parts of DynamicResources and
DefaultPreemption. The PodScheduled condition of a pending pod shows all of it.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property

import msgspec

from .failures import Excluded, Failures, Rejected

NO_NODES = "no nodes available to schedule pods"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CLAIMS = "no new claims to deallocate"


class Why(StrEnum):
    """Why the known objects don't lead to a verdict."""

    OTHER_SCHEDULER = "another scheduler places the pod"
    GATED = "the pod waits for scheduling gates"
    GROUPED = "the pod is scheduled with a group"
    DEVICE_CLAIM = "device claims decide about the pod"
    RELEASE = "patch releases or feature gates of the scheduler decide about the pod"
    NODE_FEATURE = "features that nodes declare decide about the pod"
    NOT_KNOWN = "not all objects of a kind are known"
    UNDECODABLE_OBJECT = "an object can't be decoded"
    UNDECODABLE_POD = "the pod itself can't be decoded"
    NEW_VOLUME = "a volume has yet to be created, and nobody knows where"


class Unknown(msgspec.Struct, frozen=True):
    """One cause of uncertainty."""

    why: Why
    detail: str
    """The scheduler, gate, claim, resource, kind or object that it concerns."""
    may_admit: bool = False
    """Whether a refusal could become a fit."""
    may_refuse: bool = True
    """Whether a fit could become a refusal."""

    def __str__(self) -> str:
        return f"{self.why}: {self.detail}"


class Outcome(StrEnum):
    """The verdict in one word."""

    FITS = "fits"
    """A node has room now."""
    FITS_AFTER_PREEMPTION = "fits after preemption"
    """A node has room once the scheduler has preempted pods of lower priority."""
    BUSY = "busy"
    """No node has room now, but one will if pods start or end, or if it comes back (`away`)."""
    IMPOSSIBLE = "impossible"
    """No existing node can hold the pod, even after all other pods end."""
    UNKNOWN = "unknown"
    """The known objects aren't enough to decide, or another scheduler decides."""


NO_ROOM = (Outcome.BUSY, Outcome.IMPOSSIBLE)


class Verdict(msgspec.Struct, frozen=True, dict=True):
    """The nodes where a pod fits now, and why it doesn't fit on the others."""

    outcome: Outcome
    feasible: tuple[str, ...] = ()
    """Names of the nodes where the pod fits now, sorted."""
    failures: Mapping[str, Failures] = msgspec.field(default_factory=dict)
    """Node to the failures of the first rule that failed there. `evaluate` sets it only for a
    refusal, `explain` always."""
    nodes: int = 0
    reason_counts: Mapping[str, int] = msgspec.field(default_factory=dict)
    """The number of nodes for each of the scheduler's texts; only for a refusal."""
    unknown: tuple[Unknown, ...] = ()
    """Everything unknown that could change the outcome."""
    rejected: Rejected | None = None
    """Why the pod can't run on any node, if one reason holds for all."""
    preemption: str = ""
    """Why preemption wouldn't help, in the scheduler's words."""
    preemption_node: str | None = None
    """A node where preemption would help."""
    preemption_seconds: int = 0
    """How long the pods of lower priority may take to end there."""
    busy: tuple[str, ...] = ()
    """Nodes that could hold the pod once other pods start or end."""
    away: tuple[str, ...] = ()
    """Nodes that could hold it once they come back: cordoned, not ready, unhealthy devices."""
    in_use: frozenset[str] = frozenset()
    """Its ReadWriteOncePod claims that other pods have: until these end, no node can hold it."""

    @property
    def lacks_node(self) -> bool:
        """Whether the pod needs another node; none helps if a claim is missing or in use."""
        return self.outcome in NO_ROOM and not (self.rejected or self.in_use)

    @cached_property
    def reasons(self) -> dict[str, list[str]]:
        """Node to the scheduler's own texts, for the nodes on which it ran a filter."""
        texts: dict[int, list[str]] = {}
        reasons: dict[str, list[str]] = {}
        for name, facts in self.failures.items():
            text = texts.get(id(facts))  # thousands of nodes share their facts
            if text is None:
                text = texts[id(facts)] = [fact.reason for fact in facts]
                if isinstance(facts[0], Excluded | Rejected):
                    text.clear()
            if text:
                reasons[name] = text
        return reasons

    @cached_property
    def message(self) -> str:
        """The scheduler's fit error without the part about preemption; "" if a node fits."""
        if self.feasible or (self.nodes and not self.failures):
            return ""
        if not self.nodes:
            return NO_NODES
        if self.rejected is not None:
            return f"0/{self.nodes} nodes are available: {self.rejected.reason}."
        return histogram(self.nodes, self.reason_counts)

    @cached_property
    def condition_message(self) -> str:
        """The whole message of the pod's PodScheduled condition; "" if a node fits."""
        error = self.message
        if not error or error == NO_NODES:
            return error
        if self.rejected is not None:
            # After a rejection, DynamicResources didn't run its PreFilter, so its PostFilter fails.
            return f"{error} not found"
        return f"{error} {NO_CLAIMS}, preemption: {self.preemption}" if self.preemption else error


def histogram(nodes: int, reasons: Mapping[str, int]) -> str:
    """Return the text that counts the nodes for each reason, sorted as text."""
    parts = sorted(f"{number} {reason}" for reason, number in reasons.items() if number)
    return f"0/{nodes} nodes are available:" + (f" {', '.join(parts)}." if parts else "")

"""The answer of an evaluation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from . import fit_error
from .failures import Excluded, Failures, Rejected
from .unknowns import Unknown


class Outcome(StrEnum):
    """What an administrator would call it."""

    FITS = "fits"
    """A node has room now."""
    FITS_AFTER_PREEMPTION = "fits after preemption"
    """A node has room once pods of lower priority are gone; the scheduler will see to that."""
    BUSY = "busy"
    """No node has room, but one would if pods came or went, or if it were back (`away`)."""
    IMPOSSIBLE = "impossible"
    """No present node could hold the pod, whatever became of pods."""
    UNKNOWN = "unknown"
    """What is known does not decide it, or another scheduler does."""


@dataclass(frozen=True)
class Verdict:
    """Where a pod could run now, and what keeps it from the other nodes."""

    outcome: Outcome
    feasible: tuple[str, ...] = ()
    """Nodes that hold the pod now, sorted."""
    failures: Mapping[str, Failures] = field(default_factory=dict)
    """Node to the facts of the first rule that failed there. Filled in for a refusal, and always by
    `explain`."""
    nodes: int = 0
    """How many nodes there are."""
    reason_counts: Mapping[str, int] = field(default_factory=dict)
    """How many nodes each of the scheduler's texts is true of; only for a refusal."""
    unknown: tuple[Unknown, ...] = ()
    """What is not known and could change the outcome."""
    rejected: Rejected | None = None
    """What keeps the pod from every node alike, if anything does."""
    preemption: str = ""
    """Why ending pods of lower priority would not help, in the scheduler's words."""
    preemption_node: str | None = None
    """A node where it would help."""
    busy: tuple[str, ...] = ()
    """Nodes that could hold the pod if pods came or went."""
    away: tuple[str, ...] = ()
    """Nodes that could hold the pod were they back: cordoned, not ready, devices unhealthy."""

    @cached_property
    def reasons(self) -> dict[str, list[str]]:
        """Node to the scheduler's own texts, for nodes that a filter was run on."""
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
        """The scheduler's own message, without what it says of preemption; "" if a node fits."""
        if self.feasible or (self.nodes and not self.failures):
            return ""
        return fit_error.fit_error(self.nodes, self.rejected, self.reason_counts)

    @cached_property
    def condition_message(self) -> str:
        """The whole message of the pod's condition PodScheduled; "" if a node fits."""
        if not self.message:
            return ""
        return fit_error.condition(self.message, self.rejected, self.preemption)

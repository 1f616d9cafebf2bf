"""Our verdict beside the scheduler's answer, case by case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpuspawner.scheduling import ClusterState, Outcome, Verdict, Why, evaluate
from tests.scheduling.generators.case import Case
from tests.scheduling.live.api import Plain
from tests.scheduling.live.world import Answer, World

# The API's plural -> the argument of ClusterState.from_objects.
ARGUMENTS = {
    "nodes": "nodes",
    "pods": "pods",
    "namespaces": "namespaces",
    "persistentvolumeclaims": "persistentVolumeClaims",
    "persistentvolumes": "persistentVolumes",
    "storageclasses": "storageClasses",
    "csinodes": "csiNodes",
    "csidrivers": "csiDrivers",
    "csistoragecapacities": "csiStorageCapacities",
    "volumeattachments": "volumeAttachments",
    "deviceclasses": "deviceClasses",
}


@dataclass(frozen=True)
class Comparison:
    """One case, answered twice.

    Attributes:
        objects: What the API server had when both were asked.
        pod: The pod as admitted.
        difference: In words; empty when both say the same.
    """

    name: str
    objects: dict[str, list[Plain]]
    pod: Plain
    verdict: Verdict
    answer: Answer
    difference: str

    def as_plain(self) -> Plain:
        """Return all that is needed to see the difference again."""
        return {
            "name": self.name,
            "difference": self.difference,
            "pod": self.pod,
            **{ARGUMENTS[plural]: made for plural, made in self.objects.items()},
        }


def judge(objects: dict[str, list[Plain]], pod: Plain) -> Verdict:
    """Evaluate a pod against plain objects listed from an API server."""
    return evaluate(state_of(objects), pod)


def state_of(objects: dict[str, list[Plain]]) -> ClusterState:
    """The state that has nothing but these objects."""
    given: dict[str, Any] = {ARGUMENTS[each]: made for each, made in objects.items()}
    return ClusterState.from_objects(**given)


async def compare(world: World, case: Case) -> Comparison:
    """Load a case, ask both, clear it away."""
    try:
        await world.load(case)
        first = await _ask_both(world, case)
        if not first.difference:
            return first
        # The scheduler's several watches may bring one moment's changes in any order: only what
        # it says again, of a cluster at rest, counts.
        await world.remove(case.pod)
        return await _ask_both(world, case)
    finally:
        await world.clear()


async def _ask_both(world: World, case: Case) -> Comparison:
    pod = await world.admitted(case.pod)
    objects = await world.listed()
    verdict = judge(objects, pod)
    answer = await world.schedule(case.pod)
    return Comparison(case.name, objects, pod, verdict, answer, difference(verdict, answer))


def left_open(verdict: Verdict) -> bool:
    """Whether it is unknown on purpose: a volume is being made, and no provisioner runs here."""
    return verdict.outcome is Outcome.UNKNOWN and {each.why for each in verdict.unknown} == {
        Why.NEW_VOLUME
    }


def difference(verdict: Verdict, answer: Answer) -> str:
    """Say where a verdict and an answer differ; an empty text when they are the same."""
    if answer.node:
        if verdict.outcome is not Outcome.FITS:
            return f"bound to {answer.node}, we say {verdict.outcome}: {verdict.message}"
        if answer.node not in verdict.feasible:
            return f"bound to {answer.node}, we name {verdict.feasible}"
        return ""
    if answer.nominated and verdict.outcome is not Outcome.FITS_AFTER_PREEMPTION:
        return f"nominated to {answer.nominated}, we say {verdict.outcome}: {answer.message}"
    refusals = {Outcome.BUSY, Outcome.IMPOSSIBLE}
    if not answer.nominated and verdict.outcome not in refusals and not left_open(verdict):
        return f"refused, we say {verdict.outcome} {verdict.feasible}: {answer.message}"
    if answer.message != verdict.condition_message:
        return f"it writes\n  {answer.message}\nwe write\n  {verdict.condition_message}"
    return ""

"""Compares our verdict with the scheduler's answer, case by case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gpuspawner.kube.objects import strict_convert
from gpuspawner.kube.pods import Pod
from gpuspawner.scheduling import ClusterState, Outcome, Verdict, Why, evaluate
from gpuspawner.scheduling.rules import DEFAULT_RULES, readings
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
        objects: The objects in the API server during the comparison.
        pod: The pod as admitted.
        difference: The difference in words; empty if there is none.
    """

    name: str
    objects: dict[str, list[Plain]]
    pod: Plain
    verdict: Verdict
    answer: Answer
    difference: str

    def as_plain(self) -> Plain:
        """Return everything that is needed to reproduce the difference."""
        return {
            "name": self.name,
            "difference": self.difference,
            "pod": self.pod,
            **{ARGUMENTS[plural]: made for plural, made in self.objects.items()},
        }


RULES = msgspec.structs.replace(DEFAULT_RULES, missing_drivers_by_gate=False)
"""The rules of the local cluster's scheduler, whose patch release and feature gates are known."""


def judge(state: ClusterState, pod: Plain) -> Verdict:
    """Evaluate a pod as v1.36.2 reads it, which misreads some namespace selectors."""
    decoded = strict_convert(pod, Pod)
    return evaluate(state, readings(decoded, DEFAULT_RULES)[-1][1])


def state_of(objects: dict[str, list[Plain]]) -> ClusterState:
    """Return a state with only these objects."""
    given: dict[str, Any] = {ARGUMENTS[each]: made for each, made in objects.items()}
    return ClusterState.from_objects(**given, rules=RULES)


async def compare(world: World, case: Case) -> Comparison:
    """Load a case, compare both answers, and remove its objects."""
    try:
        await world.load(case)
        first = await _ask_both(world, case)
        if not first.difference:
            return first
        # The scheduler's watches may deliver changes in any order. So only a second answer,
        # without changes to the cluster, counts.
        await world.remove(case.pod)
        return await _ask_both(world, case)
    finally:
        await world.clear()


async def _ask_both(world: World, case: Case) -> Comparison:
    pod = await world.admitted(case.pod)
    objects = await world.listed()
    verdict = judge(state_of(objects), pod)
    answer = await world.schedule(case.pod)
    return Comparison(case.name, objects, pod, verdict, answer, difference(verdict, answer))


def left_open(verdict: Verdict) -> bool:
    """Return whether the verdict is rightly unknown: no provisioner creates the volume here."""
    return verdict.outcome is Outcome.UNKNOWN and {each.why for each in verdict.unknown} == {
        Why.NEW_VOLUME
    }


def difference(verdict: Verdict, answer: Answer) -> str:
    """Describe how a verdict and an answer differ; empty if they agree."""
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

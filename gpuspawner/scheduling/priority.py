"""A pod's priority before admission has set it.

Source: the admission plugin Priority (plugin/pkg/admission/priority/admission.go, v1.36.2).
"""

from typing import NamedTuple

from gpuspawner.kube.nodes import PriorityClass
from gpuspawner.kube.pods import Pod

from .state import ClusterState

BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class Priority(NamedTuple):
    """A pod's priority."""

    value: int
    preempts: bool
    """Whether it may preempt pods of lower priority."""
    known: bool = True
    """Whether the value is certain. It isn't if its PriorityClass is unknown."""


def priority_of(pod: Pod, state: ClusterState) -> Priority:
    """Return a pod's priority: its own, or that of its PriorityClass or of the default class."""
    spec, storage = pod.spec, state.storage
    name = spec.priority_class_name
    value = BUILT_IN.get(name) if spec.priority is None else spec.priority
    if value is not None:
        return Priority(value, spec.preemption_policy != "Never")
    if name:
        found = storage.get(PriorityClass, name)
        known = found is not None
    else:
        defaults = [c for c in storage.all(PriorityClass) if c.global_default]
        # If several classes are the default, the lowest value counts.
        found = min(defaults, key=lambda class_: class_.value, default=None)
        known = state.known(PriorityClass.__name__)
    if found is None:
        return Priority(0, spec.preemption_policy != "Never", known)
    policy = spec.preemption_policy or found.preemption_policy
    return Priority(found.value, policy != "Never", known)

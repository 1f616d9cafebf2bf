"""What a pod says to Kueue, and what Kueue makes of it."""

from collections.abc import Iterable

from gpuspawner.kube.kueue import ResourceFlavor
from gpuspawner.kube.pods import Pod

_PREFIX = "kueue.x-k8s.io/"
QUEUE = f"{_PREFIX}queue-name"
PRIORITY = f"{_PREFIX}priority-class"
MANAGED = f"{_PREFIX}managed"
"""Labels (``pkg/controller/constants`` and ``pkg/constants`` of Kueue 0.15). Kueue itself writes
the last one, into each pod that it holds back."""
ADMISSION = f"{_PREFIX}admission"
"""The gate of a pod that waits for quota. Kueue takes its other gates away at the same time, unless
it uses topologies."""


def queue_of(pod: Pod) -> str:
    """Return the name of the LocalQueue that a pod names; "" if it names none."""
    return (pod.metadata.labels or {}).get(QUEUE, "")


def is_gated(pod: Pod) -> bool:
    """Whether Kueue holds a pod back until there is quota for it."""
    return any(it.name == ADMISSION for it in pod.spec.scheduling_gates or ())


def without_gates(pod: Pod) -> Pod:
    """Return a pod as kube-scheduler gets to see it: Kueue takes its own gates away first."""
    gates = pod.spec.scheduling_gates
    if not gates or not is_gated(pod):
        return pod
    others = [it for it in gates if not it.name.startswith(_PREFIX)]
    return pod.with_spec(scheduling_gates=others or None)


def tolerating(pod: Pod, flavors: Iterable[ResourceFlavor]) -> Pod:
    """Return a pod with the tolerations that Kueue adds when it admits it with these flavors.

    ``podset.FromAssignment`` and ``Merge`` (``pkg/podset/podset.go`` of Kueue 0.15.0).
    """
    tolerations = list(pod.spec.tolerations or ())
    for it in flavors:
        tolerations += [one for one in it.spec.tolerations or () if one not in tolerations]
    return pod.with_spec(tolerations=tolerations or None)

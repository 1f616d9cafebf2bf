"""What a workload says of its place in a queue."""

import re
from collections.abc import Sequence

from gpuspawner.kube.kueue import ResourceGroup, Workload, condition, holds
from gpuspawner.scheduling.requests import is_device

_NEVER = ("unavailable in ClusterQueue", "namespace doesn't match ClusterQueue selector")
_LATER = ("insufficient unused quota", "preemption")
_SHORT = re.compile(r"insufficient unused quota for (\S+) in flavor ([^\s,]+)")
_EXCLUDED = (
    re.compile(r"insufficient quota for \S+ in flavor ([^\s,]+), [^,]* > maximum capacity"),
    re.compile(r"untolerated taint \{[^}]{0,1000}\} in flavor ([^\s,]+)"),
    re.compile(r"flavor (\S+) doesn't match node affinity"),
)
"""What Kueue says of a flavor that it can never give the pod."""


def is_checked(workload: Workload) -> bool:
    """Whether a workload has quota already, and waits for admission checks."""
    return holds(workload, "QuotaReserved") and not holds(workload, "Admitted")


def short(workload: Workload) -> tuple[str, frozenset[str]]:
    """Return a resource of which Kueue says that too little is left, and in which flavors.

    Devices come first. The resource is "" if Kueue doesn't say so.
    """
    found = _SHORT.findall(_refusal(workload))
    resource = min((it for it, _ in found), key=devices_first, default="")
    return resource, frozenset(flavor for it, flavor in found if it == resource)


def hopeless(workload: Workload, groups: Sequence[ResourceGroup]) -> str:
    """Return why Kueue says that a workload can never be admitted; "" if it doesn't.

    The texts are those of ``flavorassigner.go`` and ``scheduler.go``, which are the same in Kueue
    0.15.0 and 0.19.2. After an attempt that failed, Kueue may begin with the next flavor
    (``NextFlavorToTryForPodSetResource`` in ``pkg/workload/workload.go``), and says nothing of the
    first ones then. So the text counts only if it excludes all flavors of a group.

    Args:
        workload: As Kueue has left it.
        groups: The resources and flavors of its ClusterQueue.
    """
    said = _refusal(workload)
    if any(it in said for it in _LATER):
        return ""
    excluded = {flavor for pattern in _EXCLUDED for flavor in pattern.findall(said)}
    flavors = [{it.name for it in group.flavors or ()} for group in groups]
    is_never = any(it in said for it in _NEVER) or any(it and it <= excluded for it in flavors)
    return said if is_never else ""


def devices_first(resource: str) -> tuple[bool, str]:
    """Return what to sort resources by: devices are what people wait for."""
    return not is_device(resource), resource


def _refusal(workload: Workload) -> str:
    """Return why Kueue hasn't reserved quota; "" if it has, or hasn't tried yet."""
    found = condition(workload, "QuotaReserved")
    return found.message if found and found.status == "False" else ""

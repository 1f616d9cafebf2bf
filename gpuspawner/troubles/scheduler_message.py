"""Reads kube-scheduler's text why a pod has no node.

The grammar is that of ``FitError.Error`` in framework/types.go, with the wordings of 1.30 to 1.37
and of a few older versions. The condition PodScheduled has the whole text; an event cuts it.
"""

import re
from collections.abc import Iterator
from enum import StrEnum

import msgspec


class ReasonKind(StrEnum):
    """What a reason is about, if it tells a user more than that no node suits."""

    RESOURCE = "resource"
    PODS = "pods"
    """The node has as many pods as it may have."""
    DISK = "disk"
    """No node can use a volume, or a claim has none."""
    GATES = "gates"
    """Something holds the pod back: scheduling gates, or the rest of its group."""


class SchedulerReason(msgspec.Struct, frozen=True):
    """Why some nodes, or all of them, don't hold the pod.

    Attributes:
        resource: Of which a node has too little; "" for the other kinds.
    """

    kind: ReasonKind
    resource: str = ""


# Each of its reasons takes some microseconds, and the hub does nothing else meanwhile.
_LONGEST = 65_536
_HEAD = re.compile(r"[0-9]{1,9}/[0-9]{1,9} nodes are available:? *")
_PREEMPTION = re.compile(r"(?:^|(?<=[ .]))preemption: ")
# A count begins a reason; reasons of other plugins have commas of their own.
_NEXT_REASON = re.compile(r", (?=[0-9]{1,9} )")
_COUNT = re.compile(r"(?:[0-9]{1,9} )?")
_END_OF_REASONS = re.compile(r"\.(?: |$)")

_KINDS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"Too many pods|Insufficient pods(?!\S)", ReasonKind.PODS),
        (r"Insufficient (?P<resource>\w\S*)", ReasonKind.RESOURCE),
        (r"node\(s\) didn't match PersistentVolume's node affinity", ReasonKind.DISK),
        (r"node\(s\) had volume node affinity conflict", ReasonKind.DISK),
        (r"node\(s\) had no available (?:volume zone|disk)", ReasonKind.DISK),
        (r"\S+ CSI driver is not installed on the node", ReasonKind.DISK),
        (r"node\(s\) exceed max volume count", ReasonKind.DISK),
        (r"node\(s\) unavailable due to PersistentVolumeClaim with ReadWrite", ReasonKind.DISK),
        (r"node has pod using PersistentVolumeClaim with the same name", ReasonKind.DISK),
        (r"node\(s\) didn't find available persistent volumes to bind", ReasonKind.DISK),
        (r"node\(s\) unavailable due to one or more pvc\(s\) bound to non", ReasonKind.DISK),
        (r"node\(s\) did not have enough free storage", ReasonKind.DISK),
        (r"pod has unbound immediate PersistentVolumeClaims", ReasonKind.DISK),
        (r"VolumeBindingMode not set for StorageClass", ReasonKind.DISK),
        (r"running (?:PreBind plugin )?\"VolumeBinding\"", ReasonKind.DISK),
        (r".* to create the persistentvolumeclaim \"", ReasonKind.DISK),
        (r"persistentvolumeclaims? \"[^\"]*\" (?:not found|is being)", ReasonKind.DISK),
        (r"persistentvolumeclaim \"[^\"]*\" bound to non-existent", ReasonKind.DISK),
        (r"waiting for (?:scheduling gates|pods's pod group|minCount pods)", ReasonKind.GATES),
        (r"Scheduling is blocked due to non-empty scheduling gates", ReasonKind.GATES),
    )
)


def reasons(text: str) -> Iterator[SchedulerReason]:
    """Yield the reasons that a text names, in its order, and none of what preemption does."""
    said = _PREEMPTION.split(text[:_LONGEST].strip(), maxsplit=1)[0]
    head = _HEAD.match(said)
    listed = said[head.end() :] if head else said
    for part in _NEXT_REASON.split(_END_OF_REASONS.split(listed, maxsplit=1)[0]):
        begin = _COUNT.match(part).end()  # type: ignore[union-attr]  # it matches any text
        for pattern, kind in _KINDS:
            if found := pattern.match(part, begin):
                yield SchedulerReason(kind, found.groupdict().get("resource") or "")
                break

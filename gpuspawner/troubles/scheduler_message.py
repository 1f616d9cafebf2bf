"""Parses kube-scheduler's text why a pod has no node.

The grammar is that of ``FitError.Error`` in framework/types.go, with the wordings of 1.30 to 1.37
and of older versions. The condition PodScheduled has the whole text; an event cuts it. Whoever
reads it must not take a reason's count for its share: a node with two reasons counts for both.
"""

import re
from enum import StrEnum

import msgspec


class ReasonKind(StrEnum):
    """What a reason is about."""

    RESOURCE = "resource"
    PODS = "pods"
    """The node has as many pods as it may have."""
    TAINT = "taint"
    UNSCHEDULABLE = "unschedulable"
    """The node is cordoned."""
    NODE_AFFINITY = "node-affinity"
    """The node selector or the node affinity."""
    NODE_NAME = "node-name"
    POD_AFFINITY = "pod-affinity"
    POD_ANTI_AFFINITY = "pod-anti-affinity"
    REPELLED = "repelled"
    """The anti-affinity of pods that run there."""
    SPREAD = "spread"
    PORTS = "ports"
    VOLUME_ELSEWHERE = "volume-elsewhere"
    """The volume exists, but not for this node or zone."""
    VOLUME_COUNT = "volume-count"
    VOLUME_IN_USE = "volume-in-use"
    NO_VOLUME = "no-volume"
    """No volume is left for a claim, or the volume of a claim is gone."""
    STORAGE_SPACE = "storage-space"
    UNBOUND_CLAIM = "unbound-claim"
    MISSING_CLAIM = "missing-claim"
    DEVICES = "devices"
    """Dynamic resource allocation."""
    NODE_FEATURES = "node-features"
    NODE_CONDITION = "node-condition"
    GATES = "gates"
    """Something holds the pod back: scheduling gates, or the rest of its group."""
    NO_NODES = "no-nodes"
    DELETED = "deleted"
    """The pod itself is being deleted."""
    NO_VICTIMS = "no-victims"
    """Preemption: no pod there has a lower priority, or ending such pods isn't enough."""
    NOT_HELPFUL = "not-helpful"
    """Preemption: whatever ends there, the node stays unfit."""
    NEVER_PREEMPTS = "never-preempts"
    VICTIMS_END = "victims-end"
    """Preemption: pods with a lower priority are already ending."""
    UNKNOWN = "unknown"


class SchedulerReason(msgspec.Struct, frozen=True):
    """Why nodes, or all of them, don't hold the pod.

    Attributes:
        text: As the scheduler writes it.
        count: How many nodes have this reason; None if it is one of the pod as a whole.
        subject: The resource, the taint's key, the claim or the class of devices, if it is said.
    """

    kind: ReasonKind
    text: str
    count: int | None = None
    subject: str = ""


class SchedulerMessage(msgspec.Struct, frozen=True):
    """What kube-scheduler says of a pod.

    Attributes:
        text: The whole text.
        nodes: How many nodes there are; None if it doesn't say.
        reasons: In the order of the text.
        preemption: Why ending other pods doesn't help, or that they are ending already.
        note: What other plugins add between the reasons and the part on preemption.
        is_cut: Whether the end of the text is missing, as in an event, or hasn't been read.
    """

    text: str
    nodes: int | None = None
    reasons: tuple[SchedulerReason, ...] = ()
    preemption: "SchedulerMessage | None" = None
    note: str = ""
    is_cut: bool = False


_CUT = " ..."
# Each of its reasons takes some microseconds, and the hub does nothing else meanwhile.
_LONGEST = 65_536
_HEAD = re.compile(r"[0-9]{1,9}/([0-9]{1,9}) nodes are available:?")
# Up to 1.9: the counts follow the reasons.
_OLD_HEAD = re.compile(
    r"No nodes are available that match all of the(?: following)? predicates::? ?"
)
_OLD_REASON = re.compile(r"(.+?) \(([0-9]{1,9})\)")
_PREEMPTION = re.compile(r"(?:^|(?<=[ .]))preemption: ")
# A count begins a reason; reasons of other plugins have commas of their own.
_NEXT_REASON = re.compile(r", (?=[0-9]{1,9} )")
_COUNTED = re.compile(r"([0-9]{1,9}) (.*)", re.DOTALL)
_END_OF_REASONS = re.compile(r"\.(?: |$)")

_KINDS = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"Insufficient (?P<subject>\S+)", ReasonKind.RESOURCE),
        (r"Too many pods", ReasonKind.PODS),
        (r"node\(s\) had (?:untolerated )?taint \{(?P<subject>[^:}=]*+)[^}]*+\}", ReasonKind.TAINT),
        (r"node\(s\) had (?:untolerated )?taint|PodToleratesNodeTaints", ReasonKind.TAINT),
        (r"node\(s\) were unschedulable|NodeUnschedulable", ReasonKind.UNSCHEDULABLE),
        (
            r"node\(s\) didn't match (?:scheduler-enforced )?(?:Pod's )?node (?:affinity|selector)",
            ReasonKind.NODE_AFFINITY,
        ),
        (r"node\(s\) didn't satisfy plugin\(s\) \[NodeAffinity\]", ReasonKind.NODE_AFFINITY),
        (r"node\(s\) didn't satisfy plugin\(s\) \[NodeName\]", ReasonKind.NODE_NAME),
        (r"pod affinity terms conflict|MatchNodeSelector", ReasonKind.NODE_AFFINITY),
        (
            r"node\(s\) didn't match the requested (?:node name|hostname)|HostName",
            ReasonKind.NODE_NAME,
        ),
        (r"node\(s\) didn't match pod affinity rules", ReasonKind.POD_AFFINITY),
        (r"node\(s\) didn't match pod anti-affinity rules", ReasonKind.POD_ANTI_AFFINITY),
        (r"node\(s\) didn't satisfy existing pods anti-affinity rules", ReasonKind.REPELLED),
        (
            r"node\(s\) didn't match pod affinity/anti-affinity|MatchInterPodAffinity",
            ReasonKind.POD_AFFINITY,
        ),
        (r"node\(s\) didn't match pod topology spread constraint", ReasonKind.SPREAD),
        (r"node\(s\) didn't have free ports|PodFitsHostPorts", ReasonKind.PORTS),
        (r"node\(s\) didn't match PersistentVolume's node affinity", ReasonKind.VOLUME_ELSEWHERE),
        (r"node\(s\) had volume node affinity conflict", ReasonKind.VOLUME_ELSEWHERE),
        (
            r"node\(s\) had no available volume zone|NoVolumeZoneConflict",
            ReasonKind.VOLUME_ELSEWHERE,
        ),
        (r"(?P<subject>\S+) CSI driver is not installed on the node", ReasonKind.VOLUME_ELSEWHERE),
        (r"node\(s\) exceed max volume count|Max\w+VolumeCount", ReasonKind.VOLUME_COUNT),
        (r"node\(s\) had no available disk|NoDiskConflict", ReasonKind.VOLUME_IN_USE),
        (
            r"node\(s\) unavailable due to PersistentVolumeClaim with ReadWriteOncePod",
            ReasonKind.VOLUME_IN_USE,
        ),
        (r"node has pod using PersistentVolumeClaim with the same name", ReasonKind.VOLUME_IN_USE),
        (r"node\(s\) didn't find available persistent volumes to bind", ReasonKind.NO_VOLUME),
        (
            r"node\(s\) unavailable due to one or more pvc\(s\) bound to non-existent",
            ReasonKind.NO_VOLUME,
        ),
        (r"node\(s\) did not have enough free storage", ReasonKind.STORAGE_SPACE),
        (r"pod has unbound immediate PersistentVolumeClaims", ReasonKind.UNBOUND_CLAIM),
        (r"VolumeBindingMode not set for StorageClass", ReasonKind.UNBOUND_CLAIM),
        (
            r".*binding volumes: provisioning failed for PVC \"(?P<subject>[^\"]*)",
            ReasonKind.NO_VOLUME,
        ),
        (r"running (?:PreBind plugin )?\"VolumeBinding\"", ReasonKind.NO_VOLUME),
        (
            r".* to create the persistentvolumeclaim \"(?P<subject>[^\"]*)\"",
            ReasonKind.UNBOUND_CLAIM,
        ),
        (
            r"persistentvolumeclaims? \"(?P<subject>[^\"]*)\" (?:not found|is being deleted)",
            ReasonKind.MISSING_CLAIM,
        ),
        (
            r"persistentvolumeclaim \"(?P<subject>[^\"]*)\" bound to non-existent",
            ReasonKind.NO_VOLUME,
        ),
        (r"cannot (?:allocate all claims|schedule extended resource claim)", ReasonKind.DEVICES),
        (r"running (?:PreBind plugin )?\"DynamicResources\"", ReasonKind.DEVICES),
        (r"cannot fit resource|asked by caller to stop allocating devices", ReasonKind.DEVICES),
        (r"(?i:.*resource ?claim)|claim \S+[,:] |pod \S+ ResourceClaim", ReasonKind.DEVICES),
        (r"request \S+: device class (?P<subject>\S+) does not exist", ReasonKind.DEVICES),
        (r"node\(s\) didn't match Pod's required features", ReasonKind.NODE_FEATURES),
        (r"node\(s\) (?:had unknown conditions|were not ready)", ReasonKind.NODE_CONDITION),
        (r"node\(s\) (?:were out of disk|had \w+ pressure|had network)", ReasonKind.NODE_CONDITION),
        (r"NodeNotReady|NodeUnder\w+Pressure", ReasonKind.NODE_CONDITION),
        (r"waiting for (?:scheduling gates|pods's pod group|minCount pods)", ReasonKind.GATES),
        (r"Scheduling is blocked due to non-empty scheduling gates", ReasonKind.GATES),
        (r"waiting for the preemption for this pod", ReasonKind.VICTIMS_END),
        (r"pod group is waiting for preemption", ReasonKind.VICTIMS_END),
        (r"no nodes available to schedule pods", ReasonKind.NO_NODES),
        (r"skip schedule deleting pod", ReasonKind.DELETED),
        (r"No preemption victims found for incoming p", ReasonKind.NO_VICTIMS),
        (r"Preemption is not helpful for scheduling", ReasonKind.NOT_HELPFUL),
        (r"not eligible due to preemptionPolicy=Never", ReasonKind.NEVER_PREEMPTS),
        (r"not eligible due to a terminating pod on the nominated node", ReasonKind.VICTIMS_END),
        (r"found a potential placement for pod on node", ReasonKind.VICTIMS_END),
    )
)


def parse(text: str) -> SchedulerMessage:
    """Parse a text; what it doesn't know, it keeps as it is."""
    said = text[:_LONGEST].strip()
    is_cut = said.endswith(_CUT) or len(text) > _LONGEST
    said = said.removesuffix(_CUT)
    split = _PREEMPTION.search(said)
    if split is None:
        return _parse_part(text, said, None, is_cut=is_cut)
    rest = said[split.end() :]
    preemption = _parse_part(rest, rest, None, is_cut=is_cut)
    return _parse_part(text, said[: split.start()], preemption, is_cut=is_cut)


def _parse_part(
    text: str, said: str, preemption: SchedulerMessage | None, *, is_cut: bool
) -> SchedulerMessage:
    head, old = _HEAD.match(said), _OLD_HEAD.match(said)
    if head is not None:
        listed, note = _split_note(said[head.end() :].strip())
        return SchedulerMessage(text, int(head[1]), _reasons(listed), preemption, note, is_cut)
    if old is not None:
        reasons = tuple(_old_reason(part) for part in said[old.end() :].strip(" .").split(", "))
        return SchedulerMessage(text, None, reasons, preemption, "", is_cut)
    reason = said.strip(" .,")
    nodes = 0 if reason.startswith("no nodes available") else None
    reasons = (_reason(reason, None),) if reason else ()
    return SchedulerMessage(text, nodes, reasons, preemption, "", is_cut)


def _split_note(said: str) -> tuple[str, str]:
    """Split the reasons from what plugins add after them; the first full stop is between."""
    end = _END_OF_REASONS.search(said)
    if end is None:
        return said, ""
    return said[: end.start()].rstrip("."), said[end.end() :].strip(" ,.")


def _reasons(listed: str) -> tuple[SchedulerReason, ...]:
    return tuple(_counted(part) for part in _NEXT_REASON.split(listed) if part)


def _counted(part: str) -> SchedulerReason:
    counted = _COUNTED.fullmatch(part)
    return _reason(counted[2], int(counted[1])) if counted else _reason(part, None)


def _old_reason(part: str) -> SchedulerReason:
    counted = _OLD_REASON.fullmatch(part)
    return _reason(counted[1], int(counted[2])) if counted else _reason(part, None)


def _reason(text: str, count: int | None) -> SchedulerReason:
    for pattern, kind in _KINDS:
        if found := pattern.match(text):
            subject = found["subject"] if "subject" in pattern.groupindex else ""
            is_pods = kind is ReasonKind.RESOURCE and subject == "pods"
            return SchedulerReason(ReasonKind.PODS if is_pods else kind, text, count, subject or "")
    return SchedulerReason(ReasonKind.UNKNOWN, text, count)

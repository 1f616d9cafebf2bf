"""The reasons of kube-scheduler: each has its kind, in the words of all versions."""

from __future__ import annotations

import pytest

from gpuspawner.launch.scheduler_message import Kind, parse
from tests.unit.launch.read_reasons import reasons


@pytest.mark.parametrize(
    ("reason", "kind", "subject"),
    [
        ("Insufficient memory", Kind.RESOURCE, "memory"),
        ("Insufficient pods", Kind.PODS, "pods"),
        ("node(s) had taints that the pod didn't tolerate", Kind.TAINT, ""),
        ("node(s) had untolerated taint {a.b/c: d e}", Kind.TAINT, "a.b/c"),
        ("node(s) didn't match node selector", Kind.NODE_AFFINITY, ""),
        ("node(s) didn't match scheduler-enforced node affinity", Kind.NODE_AFFINITY, ""),
        ("node(s) didn't match the requested node name", Kind.NODE_NAME, ""),
        ("node(s) didn't match pod affinity rules", Kind.POD_AFFINITY, ""),
        ("node(s) didn't match pod anti-affinity rules", Kind.POD_ANTI_AFFINITY, ""),
        ("node(s) didn't satisfy existing pods anti-affinity rules", Kind.REPELLED, ""),
        ("node(s) didn't match pod affinity/anti-affinity rules", Kind.POD_AFFINITY, ""),
        ("node(s) didn't match pod topology spread constraints", Kind.SPREAD, ""),
        (
            "node(s) didn't match pod topology spread constraints (missing required label)",
            Kind.SPREAD,
            "",
        ),
        ("node(s) didn't have free ports for the requested pod ports", Kind.PORTS, ""),
        ("node(s) had volume node affinity conflict", Kind.VOLUME_ELSEWHERE, ""),
        ("node(s) didn't match PersistentVolume's node affinity", Kind.VOLUME_ELSEWHERE, ""),
        ("node(s) had no available volume zone", Kind.VOLUME_ELSEWHERE, ""),
        ("node(s) exceed max volume count", Kind.VOLUME_COUNT, ""),
        ("node(s) had no available disk", Kind.VOLUME_IN_USE, ""),
        (
            (
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
                " already in-use by another pod"
            ),
            Kind.VOLUME_IN_USE,
            "",
        ),
        ("node(s) didn't find available persistent volumes to bind", Kind.NO_VOLUME, ""),
        (
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            Kind.NO_VOLUME,
            "",
        ),
        ("node(s) did not have enough free storage", Kind.STORAGE_SPACE, ""),
        ("cannot allocate all claims", Kind.DEVICES, ""),
        ("resourceclaim not available on the node", Kind.DEVICES, ""),
        ('pod "hub/ann": ResourceClaim not created yet', Kind.DEVICES, ""),
        ("request r-1: device class h100 does not exist", Kind.DEVICES, "h100"),
        ("node(s) didn't match Pod's required features", Kind.NODE_FEATURES, ""),
        ("node(s) were not ready", Kind.NODE_CONDITION, ""),
        ("node(s) had disk pressure", Kind.NODE_CONDITION, ""),
        ("node(s) were unschedulable", Kind.UNSCHEDULABLE, ""),
        ("node(s) had unknown conditions", Kind.NODE_CONDITION, ""),
        ("node(s) were out of disk space", Kind.NODE_CONDITION, ""),
        ("node(s) had network unavailable", Kind.NODE_CONDITION, ""),
        ("NodeUnderMemoryPressure", Kind.NODE_CONDITION, ""),
        ("NodeNotReady", Kind.NODE_CONDITION, ""),
        ("NodeUnschedulable", Kind.UNSCHEDULABLE, ""),
        ("pod affinity terms conflict", Kind.NODE_AFFINITY, ""),
        ("MatchNodeSelector", Kind.NODE_AFFINITY, ""),
        ("node(s) didn't satisfy plugin(s) [NodeAffinity]", Kind.NODE_AFFINITY, ""),
        ("node(s) didn't match the requested hostname", Kind.NODE_NAME, ""),
        ("MatchInterPodAffinity", Kind.POD_AFFINITY, ""),
        ("PodFitsHostPorts", Kind.PORTS, ""),
        ("NoVolumeZoneConflict", Kind.VOLUME_ELSEWHERE, ""),
        ("MaxCSIVolumeCount", Kind.VOLUME_COUNT, ""),
        ("NoDiskConflict", Kind.VOLUME_IN_USE, ""),
        ("cannot fit resource", Kind.DEVICES, ""),
        ("asked by caller to stop allocating devices", Kind.DEVICES, ""),
        ("cannot schedule extended resource claim", Kind.DEVICES, ""),
        ("unallocated immediate resourceclaim", Kind.DEVICES, ""),
        ("resourceclaim in use", Kind.DEVICES, ""),
        ("Node failed Permit plugin Permit-1", Kind.UNKNOWN, ""),
    ],
)
@pytest.mark.parametrize("tail", [".", ". preemption: not eligible due to preemptionPolicy=Never."])
def test_each_reason_has_its_kind(reason: str, kind: Kind, subject: str, tail: str) -> None:
    message = parse(f"0/7 nodes are available: 2 {reason}, 7 Insufficient cpu{tail}")

    assert reasons(message) == [(2, kind, subject), (7, Kind.RESOURCE, "cpu")]
    assert message.reasons[0].text == reason


@pytest.mark.parametrize(
    ("reason", "kind", "subject"),
    [
        ('persistentvolumeclaim "claim-ann" not found', Kind.MISSING_CLAIM, "claim-ann"),
        ('persistentvolumeclaim "claim-ann" is being deleted', Kind.MISSING_CLAIM, "claim-ann"),
        (
            'persistentvolumeclaim "a" bound to non-existent persistentvolume "b"',
            Kind.NO_VOLUME,
            "a",
        ),
        (
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "e"',
            Kind.UNBOUND_CLAIM,
            "e",
        ),
        ("pod has unbound immediate PersistentVolumeClaims", Kind.UNBOUND_CLAIM, ""),
        ('VolumeBindingMode not set for StorageClass "x"', Kind.UNBOUND_CLAIM, ""),
        ("waiting for scheduling gates: [foo bar]", Kind.GATES, ""),
        ("waiting for pods's pod group g to appear in scheduling queue", Kind.GATES, ""),
        ("waiting for minCount pods from a gang to appear in scheduling queue", Kind.GATES, ""),
        ("waiting for the preemption for this pod to be finished", Kind.VICTIMS_END, ""),
    ],
)
def test_a_reason_of_the_whole_pod_has_no_count(reason: str, kind: Kind, subject: str) -> None:
    message = parse(f"0/3 nodes are available: {reason}. not found")

    assert reasons(message) == [(None, kind, subject)]
    assert message.note == "not found"

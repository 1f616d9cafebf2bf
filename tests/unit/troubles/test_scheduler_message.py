"""What kube-scheduler says of a pod without a node.

An id with a number is that of the public thread with the text; the others are from Kubernetes' own
source or seen on 1.36.2.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.scheduling import failures, fit_error
from gpuspawner.troubles.scheduler_message import ReasonKind, SchedulerMessage, parse

pytestmark = pytest.mark.each_python

GPU = "nvidia.com/gpu"

Parsed = list[tuple[int | None, ReasonKind, str]]


def reasons(message: SchedulerMessage | None) -> Parsed:
    return [(it.count, it.kind, it.subject) for it in message.reasons]


@pytest.mark.parametrize(
    ("text", "nodes", "expected"),
    [
        pytest.param(
            "0/36 nodes are available: 3 node(s) were unschedulable, 33 Insufficient"
            " nvidia.com/gpu. preemption: 0/36 nodes are available: 1 Insufficient nvidia.com/gpu,"
            " 3 Preemption is not helpful for scheduling, 32 No preemption victims found for"
            " incoming pod..",
            36,
            [(3, ReasonKind.UNSCHEDULABLE, ""), (33, ReasonKind.RESOURCE, GPU)],
            id="pangeo-data/pangeo-eosc#74",
        ),
        pytest.param(
            "0/13 nodes are available: 2 node(s) had taint {node-role.kubernetes.io/master: }, that"
            " the pod didn't tolerate, 2 node(s) were unschedulable, 3 node(s) didn't match Pod's"
            " node affinity/selector, 3 node(s) had taint {nvidia.com/gpu: }, that the pod didn't"
            " tolerate.",
            13,
            [
                (2, ReasonKind.TAINT, "node-role.kubernetes.io/master"),
                (2, ReasonKind.UNSCHEDULABLE, ""),
                (3, ReasonKind.NODE_AFFINITY, ""),
                (3, ReasonKind.TAINT, GPU),
            ],
            id="os-climate/os_c_data_commons#170",
        ),
        pytest.param(
            "0/13 nodes are available: 3 Insufficient nvidia.com/gpu, 4 node(s) had taint"
            " {odh/notebook: true}, that the pod didn't tolerate.",
            13,
            [(3, ReasonKind.RESOURCE, GPU), (4, ReasonKind.TAINT, "odh/notebook")],
            id="elyra-ai/elyra#2681",
        ),
        pytest.param(
            "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: }. preemption: 0/1"
            " nodes are available: 1 Preemption is not helpful for scheduling..",
            1,
            [(1, ReasonKind.TAINT, "gpu")],
            id="NVIDIA/k8s-device-plugin#421",
        ),
        pytest.param(
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
            " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling..",
            1,
            [(1, ReasonKind.NODE_AFFINITY, "")],
            id="2i2c-org/infrastructure#2815",
        ),
        pytest.param(
            "0/5 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) had untolerated"
            " taint(s). no new claims to deallocate, preemption: 0/5 nodes are available: 2 No"
            " preemption victims found for incoming pod, 3 Preemption is not helpful for"
            " scheduling.",
            5,
            [(2, ReasonKind.RESOURCE, GPU), (3, ReasonKind.TAINT, "")],
            id="1.36",
        ),
        pytest.param(
            "0/1 nodes are available: 1 node(s) had untolerated taint"
            " {node.kubernetes.io/unreachable: }. preemption: 0/1 nodes are available: 1 Preemption"
            " is not helpful for scheduling.",
            1,
            [(1, ReasonKind.TAINT, "node.kubernetes.io/unreachable")],
            id="hystax/optscale#568",
        ),
        pytest.param(
            "0/14 nodes are available: 3 node(s) didn't match Pod's node affinity/selector, 3"
            " node(s) had taint {node-role.kubernetes.io/infra: }, that the pod didn't tolerate, 3"
            " node(s) had taint {node-role.kubernetes.io/master: }, that the pod didn't tolerate, 5"
            " Insufficient nvidia.com/gpu.",
            14,
            [
                (3, ReasonKind.NODE_AFFINITY, ""),
                (3, ReasonKind.TAINT, "node-role.kubernetes.io/infra"),
                (3, ReasonKind.TAINT, "node-role.kubernetes.io/master"),
                (5, ReasonKind.RESOURCE, GPU),
            ],
            id="operate-first/apps#1905",
        ),
        pytest.param(
            "0/2 nodes are available: waiting for dynamic resource controller to create the"
            ' resourceclaim "pod0-gpu". no new claims to deallocate, preemption: 0/2 nodes are'
            " available: 2 No preemption victims found for incoming pod",
            2,
            [(None, ReasonKind.DEVICES, "")],
            id="kubernetes-sigs/dra-example-driver#23",
        ),
        pytest.param(
            'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded',
            None,
            [(None, ReasonKind.NO_VOLUME, "")],
            id="SchedulerError",
        ),
        pytest.param(
            'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC'
            ' "claim-ann"',
            None,
            [(None, ReasonKind.NO_VOLUME, "claim-ann")],
            id="SchedulerError with a claim",
        ),
        pytest.param(
            "No nodes are available that match all of the predicates:: Insufficient cpu (3),"
            " PodToleratesNodeTaints (1).",
            None,
            [(3, ReasonKind.RESOURCE, "cpu"), (1, ReasonKind.TAINT, "")],
            id="1.8",
        ),
        pytest.param(
            "0/3 nodes are available: 3 pod has unbound immediate PersistentVolumeClaims.",
            3,
            [(3, ReasonKind.UNBOUND_CLAIM, "")],
            id="1.19",
        ),
        pytest.param(
            "no nodes available to schedule pods", 0, [(None, ReasonKind.NO_NODES, "")], id="0"
        ),
        pytest.param(
            "skip schedule deleting pod: hub/jupyter-ann",
            None,
            [(None, ReasonKind.DELETED, "")],
            id="deleting",
        ),
        pytest.param(
            "0/2 nodes are available: 1 Insufficient cpu, 1 odd, with comma, 2 Too many pods.",
            2,
            [
                (1, ReasonKind.RESOURCE, "cpu"),
                (1, ReasonKind.UNKNOWN, ""),
                (2, ReasonKind.PODS, ""),
            ],
            id="a reason with a comma",
        ),
        pytest.param(
            "Scheduling is blocked due to non-empty scheduling gates",
            None,
            [(None, ReasonKind.GATES, "")],
            id="gates",
        ),
    ],
)
def test_the_nodes_and_the_reasons_are_counted(text, nodes, expected) -> None:
    message = parse(text)

    assert (message.nodes, reasons(message)) == (nodes, expected)
    assert message.text == text


def test_what_preemption_does_is_nested() -> None:
    preemption = "0/9 nodes are available: 4 No preemption victims found for incoming pod."
    message = parse(f"0/9 nodes are available: 9 Insufficient cpu. preemption: {preemption}")

    assert reasons(message.preemption) == [(4, ReasonKind.NO_VICTIMS, "")]
    assert (message.preemption.nodes, message.preemption.text) == (9, preemption)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("not eligible due to preemptionPolicy=Never.", ReasonKind.NEVER_PREEMPTS),
        ("not eligible due to a terminating pod on the nominated node.", ReasonKind.VICTIMS_END),
        ("pod group for pod not found", ReasonKind.UNKNOWN),
    ],
)
def test_preemption_may_say_one_sentence(said, kind) -> None:
    message = parse(f"0/1 nodes are available: 1 Insufficient cpu. preemption: {said}")

    assert reasons(message.preemption) == [(None, kind, "")]


@pytest.mark.parametrize(
    ("text", "expected", "is_cut", "note"),
    [
        pytest.param(
            "0/3 nodes are available: 3 odd. Error running PostFilter plugin Failed",
            [(3, ReasonKind.UNKNOWN, "")],
            False,
            "Error running PostFilter plugin Failed",
            id="what another plugin adds is a note",
        ),
        pytest.param(
            "0/9 nodes are available: 9 Insufficient cpu, 9 node(s) had untol ...",
            [(9, ReasonKind.RESOURCE, "cpu"), (9, ReasonKind.UNKNOWN, "")],
            True,
            "",
            id="an event's cut text says so and keeps its rest",
        ),
        pytest.param(
            "0/9 nodes are available: 9 node(s) had untolerated taint {nvidia.co ...",
            [(9, ReasonKind.TAINT, "")],
            True,
            "",
            id="a taint that is cut has no key",
        ),
    ],
)
def test_the_end_of_a_text_is_understood(text, expected, is_cut, note) -> None:
    message = parse(text)

    assert reasons(message) == expected
    assert (message.is_cut, message.note, message.text) == (is_cut, note, text)


def test_a_text_that_is_too_long_is_kept_whole_and_read_at_its_begin() -> None:
    text = "0/9 nodes are available: 9 Insufficient cpu" + ", 9 odd" * 100_000
    message = parse(text)

    assert message.is_cut
    assert message.text == text
    assert reasons(message)[0] == (9, ReasonKind.RESOURCE, "cpu")


def test_our_own_evaluators_texts_are_read() -> None:
    told = [
        it.reason
        for it in vars(failures).values()
        if isinstance(it, type) and isinstance(getattr(it, "reason", None), str)
    ]
    for reason in told:
        message = parse(fit_error.histogram(5, {reason: 3}))

        assert [it.text for it in message.reasons] == [reason]
        assert message.reasons[0].kind is not ReasonKind.UNKNOWN
    assert reasons(parse(fit_error.NO_NODES)) == [(None, ReasonKind.NO_NODES, "")]
    assert parse(fit_error.NOT_HELPFUL).reasons[0].kind is ReasonKind.NOT_HELPFUL
    assert parse(fit_error.NO_VICTIMS).reasons[0].kind is ReasonKind.NO_VICTIMS


pieces = st.sampled_from(
    [
        "0/3 nodes are available: ",
        "preemption: ",
        "2 Insufficient nvidia.com/gpu",
        "9 node(s) had untolerated taint {a: b}",
        ", ",
        ". ",
        "..",
        " ...",
        "99999999999999999999 ",
        "No nodes are available that match all of the predicates: ",
    ]
)


@given(st.lists(pieces | st.text(max_size=8), max_size=12).map("".join))
def test_any_text_is_read_and_kept(text) -> None:
    message = parse(text)

    assert message.text == text
    for reason in message.reasons:
        assert reason.text in text
    if not message.reasons and message.preemption is None and message.nodes is None:
        assert not text.strip(" .,\n\t\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0") or not parse(text).note


@pytest.mark.parametrize(
    ("reason", "kind", "subject"),
    [
        ("Insufficient memory", ReasonKind.RESOURCE, "memory"),
        ("Insufficient pods", ReasonKind.PODS, "pods"),
        ("node(s) had taints that the pod didn't tolerate", ReasonKind.TAINT, ""),
        ("node(s) had untolerated taint {a.b/c: d e}", ReasonKind.TAINT, "a.b/c"),
        ("node(s) didn't match node selector", ReasonKind.NODE_AFFINITY, ""),
        ("node(s) didn't match scheduler-enforced node affinity", ReasonKind.NODE_AFFINITY, ""),
        ("node(s) didn't match the requested node name", ReasonKind.NODE_NAME, ""),
        ("node(s) didn't match pod affinity rules", ReasonKind.POD_AFFINITY, ""),
        ("node(s) didn't match pod anti-affinity rules", ReasonKind.POD_ANTI_AFFINITY, ""),
        ("node(s) didn't satisfy existing pods anti-affinity rules", ReasonKind.REPELLED, ""),
        ("node(s) didn't match pod affinity/anti-affinity rules", ReasonKind.POD_AFFINITY, ""),
        ("node(s) didn't match pod topology spread constraints", ReasonKind.SPREAD, ""),
        (
            "node(s) didn't match pod topology spread constraints (missing required label)",
            ReasonKind.SPREAD,
            "",
        ),
        ("node(s) didn't have free ports for the requested pod ports", ReasonKind.PORTS, ""),
        ("node(s) had volume node affinity conflict", ReasonKind.VOLUME_ELSEWHERE, ""),
        ("node(s) didn't match PersistentVolume's node affinity", ReasonKind.VOLUME_ELSEWHERE, ""),
        ("node(s) had no available volume zone", ReasonKind.VOLUME_ELSEWHERE, ""),
        ("csi.x CSI driver is not installed on the node", ReasonKind.VOLUME_ELSEWHERE, "csi.x"),
        ("node(s) exceed max volume count", ReasonKind.VOLUME_COUNT, ""),
        ("node(s) had no available disk", ReasonKind.VOLUME_IN_USE, ""),
        (
            (
                "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod"
                " access mode"
            ),
            ReasonKind.VOLUME_IN_USE,
            "",
        ),
        (
            (
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
                " already in-use by another pod"
            ),
            ReasonKind.VOLUME_IN_USE,
            "",
        ),
        ("node(s) didn't find available persistent volumes to bind", ReasonKind.NO_VOLUME, ""),
        (
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            ReasonKind.NO_VOLUME,
            "",
        ),
        ("node(s) did not have enough free storage", ReasonKind.STORAGE_SPACE, ""),
        ("cannot allocate all claims", ReasonKind.DEVICES, ""),
        ("resourceclaim not available on the node", ReasonKind.DEVICES, ""),
        ('pod "hub/ann": ResourceClaim not created yet', ReasonKind.DEVICES, ""),
        ("request r-1: device class h100 does not exist", ReasonKind.DEVICES, "h100"),
        ("node(s) didn't match Pod's required features", ReasonKind.NODE_FEATURES, ""),
        ("node(s) were not ready", ReasonKind.NODE_CONDITION, ""),
        ("node(s) had disk pressure", ReasonKind.NODE_CONDITION, ""),
        ("node(s) were unschedulable", ReasonKind.UNSCHEDULABLE, ""),
        ("node(s) had unknown conditions", ReasonKind.NODE_CONDITION, ""),
        ("node(s) were out of disk space", ReasonKind.NODE_CONDITION, ""),
        ("node(s) had network unavailable", ReasonKind.NODE_CONDITION, ""),
        ("NodeUnderMemoryPressure", ReasonKind.NODE_CONDITION, ""),
        ("NodeNotReady", ReasonKind.NODE_CONDITION, ""),
        ("NodeUnschedulable", ReasonKind.UNSCHEDULABLE, ""),
        ("pod affinity terms conflict", ReasonKind.NODE_AFFINITY, ""),
        ("MatchNodeSelector", ReasonKind.NODE_AFFINITY, ""),
        ("node(s) didn't satisfy plugin(s) [NodeAffinity]", ReasonKind.NODE_AFFINITY, ""),
        ("node(s) didn't match the requested hostname", ReasonKind.NODE_NAME, ""),
        ("node(s) didn't satisfy plugin(s) [NodeName]", ReasonKind.NODE_NAME, ""),
        ("MatchInterPodAffinity", ReasonKind.POD_AFFINITY, ""),
        ("PodFitsHostPorts", ReasonKind.PORTS, ""),
        ("NoVolumeZoneConflict", ReasonKind.VOLUME_ELSEWHERE, ""),
        ("MaxCSIVolumeCount", ReasonKind.VOLUME_COUNT, ""),
        ("NoDiskConflict", ReasonKind.VOLUME_IN_USE, ""),
        ('running PreBind plugin "DynamicResources": timeout', ReasonKind.DEVICES, ""),
        ('running "VolumeBinding" filter plugin: no class for claim', ReasonKind.NO_VOLUME, ""),
        ("cannot fit resource", ReasonKind.DEVICES, ""),
        ("asked by caller to stop allocating devices", ReasonKind.DEVICES, ""),
        ("cannot schedule extended resource claim", ReasonKind.DEVICES, ""),
        ("unallocated immediate resourceclaim", ReasonKind.DEVICES, ""),
        ("resourceclaim in use", ReasonKind.DEVICES, ""),
        ("Node failed Permit plugin Permit-1", ReasonKind.UNKNOWN, ""),
    ],
)
def test_each_reason_has_its_kind(reason: str, kind: ReasonKind, subject: str) -> None:
    for tail in ("", " preemption: not eligible due to preemptionPolicy=Never."):
        message = parse(f"0/7 nodes are available: 2 {reason}, 7 Insufficient cpu.{tail}")

        assert reasons(message) == [(2, kind, subject), (7, ReasonKind.RESOURCE, "cpu")]
        assert message.reasons[0].text == reason


@pytest.mark.parametrize(
    ("reason", "kind", "subject"),
    [
        ('persistentvolumeclaim "claim-ann" not found', ReasonKind.MISSING_CLAIM, "claim-ann"),
        (
            'persistentvolumeclaim "claim-ann" is being deleted',
            ReasonKind.MISSING_CLAIM,
            "claim-ann",
        ),
        (
            'persistentvolumeclaim "a" bound to non-existent persistentvolume "b"',
            ReasonKind.NO_VOLUME,
            "a",
        ),
        (
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "e"',
            ReasonKind.UNBOUND_CLAIM,
            "e",
        ),
        ("pod has unbound immediate PersistentVolumeClaims", ReasonKind.UNBOUND_CLAIM, ""),
        ('VolumeBindingMode not set for StorageClass "x"', ReasonKind.UNBOUND_CLAIM, ""),
        ("waiting for scheduling gates: [foo bar]", ReasonKind.GATES, ""),
        ("waiting for pods's pod group g to appear in scheduling queue", ReasonKind.GATES, ""),
        (
            "waiting for minCount pods from a gang to appear in scheduling queue",
            ReasonKind.GATES,
            "",
        ),
        ("waiting for the preemption for this pod to be finished", ReasonKind.VICTIMS_END, ""),
        ("pod group is waiting for preemption to complete", ReasonKind.VICTIMS_END, ""),
    ],
)
def test_a_reason_of_the_whole_pod_has_no_count(
    reason: str, kind: ReasonKind, subject: str
) -> None:
    message = parse(f"0/3 nodes are available: {reason}. not found")

    assert reasons(message) == [(None, kind, subject)]
    assert message.note == "not found"

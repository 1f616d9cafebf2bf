"""What kube-scheduler says of a pod without a node.

An id with a number is that of the public thread with the text; the others are from Kubernetes' own
source or seen on 1.36.2.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.scheduling import failures
from gpuspawner.scheduling.verdict import histogram
from gpuspawner.troubles.scheduler_message import ReasonKind, reasons

pytestmark = pytest.mark.each_python

GPU = "nvidia.com/gpu"


def read(text):
    return [(it.kind, it.resource) for it in reasons(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "0/36 nodes are available: 3 node(s) were unschedulable, 33 Insufficient"
            " nvidia.com/gpu. preemption: 0/36 nodes are available: 1 Insufficient nvidia.com/gpu,"
            " 3 Preemption is not helpful for scheduling, 32 No preemption victims found for"
            " incoming pod..",
            [(ReasonKind.RESOURCE, GPU)],
            id="pangeo-data/pangeo-eosc#74",
        ),
        pytest.param(
            "0/13 nodes are available: 2 node(s) had taint {node-role.kubernetes.io/master: }, that"
            " the pod didn't tolerate, 2 node(s) were unschedulable, 3 node(s) didn't match Pod's"
            " node affinity/selector, 3 node(s) had taint {nvidia.com/gpu: }, that the pod didn't"
            " tolerate.",
            [],
            id="os-climate/os_c_data_commons#170",
        ),
        pytest.param(
            "0/5 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) had untolerated"
            " taint(s). no new claims to deallocate, preemption: 0/5 nodes are available: 2 No"
            " preemption victims found for incoming pod, 3 Preemption is not helpful for"
            " scheduling.",
            [(ReasonKind.RESOURCE, GPU)],
            id="1.36",
        ),
        pytest.param(
            "0/2 nodes are available: waiting for dynamic resource controller to create the"
            ' resourceclaim "pod0-gpu". no new claims to deallocate, preemption: 0/2 nodes are'
            " available: 2 No preemption victims found for incoming pod",
            [],
            id="kubernetes-sigs/dra-example-driver#23",
        ),
        pytest.param(
            'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded',
            [(ReasonKind.DISK, "")],
            id="SchedulerError",
        ),
        pytest.param(
            "0/3 nodes are available: 3 pod has unbound immediate PersistentVolumeClaims.",
            [(ReasonKind.DISK, "")],
            id="1.19",
        ),
        pytest.param("no nodes available to schedule pods", [], id="0"),
        pytest.param("skip schedule deleting pod: hub/jupyter-ann", [], id="deleting"),
        pytest.param(
            "0/2 nodes are available: 1 Insufficient cpu, 1 odd, with comma, 2 Too many pods.",
            [(ReasonKind.RESOURCE, "cpu"), (ReasonKind.PODS, "")],
            id="a reason with a comma",
        ),
        pytest.param(
            "Scheduling is blocked due to non-empty scheduling gates",
            [(ReasonKind.GATES, "")],
            id="gates",
        ),
        pytest.param(
            "0/3 nodes are available: 3 odd. Insufficient cpu, 1 Insufficient memory",
            [],
            id="what another plugin adds is no reason",
        ),
        pytest.param(
            "0/9 nodes are available: 9 Insufficient cpu, 9 node(s) had untol ...",
            [(ReasonKind.RESOURCE, "cpu")],
            id="the end of an event is cut",
        ),
        pytest.param("0/9 nodes are available: 9 Insufficient ...", [], id="a name is cut off"),
        pytest.param("preemption: 0/9 nodes are available: 9 Insufficient cpu.", [], id="no head"),
    ],
)
def test_the_reasons_that_tell_a_user_more_are_named(text, expected):
    assert read(text) == expected


def test_a_text_that_is_too_long_is_read_at_its_begin():
    text = "0/9 nodes are available: 9 Insufficient cpu" + ", 9 odd" * 100_000

    assert read(f"{text}, 9 Insufficient memory") == [(ReasonKind.RESOURCE, "cpu")]


def test_our_own_evaluators_texts_are_read():
    told = [
        it.reason
        for it in vars(failures).values()
        if isinstance(it, type) and isinstance(getattr(it, "reason", None), str)
    ]
    of_disks = {it for it in told if read(histogram(5, {it: 3})) == [(ReasonKind.DISK, "")]}

    words = ("volume", "disk", "storage", "PersistentVolume", "pvc")
    assert of_disks == {it for it in told if any(word in it for word in words)} != set()


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
    ]
)


@given(st.lists(pieces | st.text(max_size=8), max_size=12).map("".join))
def test_any_text_is_read_and_no_word_is_made_up(text):
    for _, resource in read(text):
        assert resource in text


OF_NODES = {
    (ReasonKind.RESOURCE, "memory"): ["Insufficient memory"],
    (ReasonKind.PODS, ""): ["Insufficient pods"],
    (ReasonKind.RESOURCE, "pods.example.com/x"): ["Insufficient pods.example.com/x"],
    (ReasonKind.DISK, ""): [
        "node(s) had volume node affinity conflict",
        "csi.x CSI driver is not installed on the node",
        (
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod"
            " access mode"
        ),
        'running "VolumeBinding" filter plugin: no class for claim',
    ],
}


@pytest.mark.parametrize(
    ("reason", "kind", "resource"), [(it, *what) for what, its in OF_NODES.items() for it in its]
)
def test_each_reason_has_its_kind(reason, kind, resource):
    for tail in ("", " preemption: not eligible due to preemptionPolicy=Never."):
        text = f"0/7 nodes are available: 2 {reason}, 7 Insufficient cpu.{tail}"

        assert read(text) == [(kind, resource), (ReasonKind.RESOURCE, "cpu")]


@pytest.mark.parametrize(
    "reason",
    [
        "node(s) had taints that the pod didn't tolerate",
        "node(s) had untolerated taint {a.b/c: d e}",
        "node(s) didn't match scheduler-enforced node affinity",
        "node(s) didn't match pod affinity rules",
        "node(s) didn't match pod topology spread constraints (missing required label)",
        "node(s) didn't have free ports for the requested pod ports",
        "cannot allocate all claims",
        "resourceclaim not available on the node",
        "node(s) were not ready",
        "node(s) had disk pressure",
        "Node failed Permit plugin Permit-1",
    ],
)
def test_what_tells_a_user_nothing_more_is_left_out(reason):
    text = f"0/7 nodes are available: 2 {reason}, 7 Insufficient cpu."

    assert read(text) == [(ReasonKind.RESOURCE, "cpu")]


OF_PODS = {
    ReasonKind.DISK: [
        'persistentvolumeclaim "claim-ann" not found',
        'persistentvolumeclaim "claim-ann" is being deleted',
        'persistentvolumeclaim "a" bound to non-existent persistentvolume "b"',
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "e"',
        "pod has unbound immediate PersistentVolumeClaims",
        'VolumeBindingMode not set for StorageClass "x"',
    ],
    ReasonKind.GATES: [
        "waiting for scheduling gates: [foo bar]",
        "waiting for pods's pod group g to appear in scheduling queue",
        "waiting for minCount pods from a gang to appear in scheduling queue",
    ],
}


@pytest.mark.parametrize(
    ("reason", "kind"), [(it, kind) for kind, its in OF_PODS.items() for it in its]
)
def test_a_reason_of_the_whole_pod_has_no_count(reason, kind):
    assert read(f"0/3 nodes are available: {reason}. not found") == [(kind, "")]

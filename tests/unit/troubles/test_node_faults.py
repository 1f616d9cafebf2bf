"""Why a node refuses a pod, and why Kubernetes ends one; an id names the public thread."""

import pytest

from gpuspawner.troubles.node_faults import of_disruption, of_ended_pod, of_failed_status
from gpuspawner.troubles.trouble import About, Fault, Kind
from tests.unit.makers.trouble_tables import meaning

GPU = "nvidia.com/gpu"


DEVICES = {
    (Kind.DEVICE_TAKEN, GPU): {
        "kubernetes/kubernetes#96519": (
            "Pod Allocate failed due to requested number of devices unavailable for"
            " nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"
        ),
        "kubernetes/kubernetes#130145": (
            "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu."
            " Requested:1, Available: 0, which is unexpected"
        ),
    },
    (Kind.DEVICE_BROKEN, "amd.com/gpu"): {
        "trueforge-org/truecharts#19201": (
            "Allocate failed due to no healthy devices present; cannot allocate unhealthy devices"
            " amd.com/gpu, which is unexpected"
        )
    },
    (Kind.DEVICE_BROKEN, GPU): {
        "unregistered": (
            "Allocate failed due to cannot allocate unregistered device nvidia.com/gpu, which is"
            " unexpected"
        )
    },
    (Kind.DEVICE_BROKEN, ""): {
        "Project-HAMi/HAMi#71": (
            "Allocate failed due to rpc error: code = Unavailable desc = error reading from"
            " server: EOF, which is unexpected"
        ),
    },
    (Kind.ONE_SHARE, ""): {
        "NVIDIA k8s-device-plugin 0.12": (
            "Allocate failed due to rpc error: code = Unknown desc = request for 'nvidia.com/gpu:"
            " 2' too large: maximum request size for shared resources is 1, which is unexpected"
        ),
        "NVIDIA k8s-device-plugin 0.20": (
            "Allocate failed due to rpc error: code = Unknown desc = invalid allocation request for"
            ' "nvidia.com/gpu": invalid request: maximum request size for shared resources is 1;'
            " found 2, which is unexpected"
        ),
        "GKE time-sharing": (
            "Allocate failed due to rpc error: code = Unknown desc = invalid request for sharing"
            " GPU (time-sharing), at most 1 nvidia.com/gpu can be requested on GPU nodes, which is"
            " unexpected"
        ),
    },
    (Kind.DEVICE_TAKEN, ""): {"less": "unexpectedly allocated less resources than required"},
    (Kind.NODE_REFUSED, ""): {"unknown": "odd"},
}


@pytest.mark.parametrize(("text", "kind", "resource"), meaning(DEVICES))
def test_a_device_gone_at_admission_ends_the_start(text, kind, resource):
    expected = Fault(kind, About(resource=resource), is_final=True)

    assert of_ended_pod("UnexpectedAdmissionError", text) == expected


EVICTIONS = {
    (Kind.NODE_PRESSURE, About(resource="ephemeral-storage")): {
        "jupyterhub/mybinder.org-deploy#2229": (
            "The node was low on resource: ephemeral-storage. Container notebook was using 252Ki,"
            " which exceeds its request of 0. "
        ),
    },
    (Kind.NODE_PRESSURE, About(resource="DiskPressure")): {
        "operate-first/apps#1352": "Pod The node had condition: [DiskPressure]. "
    },
    (Kind.NODE_PRESSURE, About(resource="MemoryPressure")): {
        "without a blank": "The node had condition: [MemoryPressure]."
    },
    (Kind.OVER_LIMIT, About(volume="dshm")): {
        "emptyDir": 'Usage of EmptyDir volume "dshm" exceeds the limit "1Gi". '
    },
    (Kind.OVER_LIMIT, About(container="notebook")): {
        "container": 'Container notebook exceeded its local ephemeral storage limit "1Gi". '
    },
    (Kind.OVER_LIMIT, About()): {
        "pod": "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "
    },
    (Kind.EVICTED, About()): {"unknown": "odd"},
}


@pytest.mark.parametrize(("text", "kind", "about"), meaning(EVICTIONS))
def test_an_eviction_tells_what_was_short(text, kind, about):
    expected = Fault(kind, about, is_final=True)

    assert of_ended_pod("Evicted", text) == expected
    assert of_failed_status("Evicted", text) == expected
    assert of_disruption("TerminationByKubelet", text) == expected


@pytest.mark.parametrize(
    ("reason", "kind", "resource"),
    [
        ("OutOfcpu", Kind.NODE_FULL, "cpu"),
        ("OutOfnvidia.com/gpu", Kind.NODE_FULL, GPU),
        ("OutOfpods", Kind.NODE_FULL, "pods"),
        ("TopologyAffinityError", Kind.TOPOLOGY, ""),
        ("NodeAffinity", Kind.NODE_CHANGED, ""),
        ("NodePorts", Kind.NODE_CHANGED, ""),
        ("TaintToleration", Kind.NODE_CHANGED, ""),
        ("VolumeAttachmentLimitExceeded", Kind.VOLUME_LIMIT, ""),
        ("NodeShutdown", Kind.NODE_SHUTDOWN, ""),
        ("Preempting", Kind.PREEMPTED, ""),
        ("DeadlineExceeded", Kind.DEADLINE, ""),
        ("AppArmor", Kind.NODE_REFUSED, ""),
    ],
)
def test_a_refusal_of_the_node_is_final(reason, kind, resource):
    expected = Fault(kind, About(resource=resource), is_final=True)

    assert of_ended_pod(reason, "") == expected
    assert of_failed_status(reason, "") == expected


@pytest.mark.parametrize("reason", ["", "OutOf", "FailedMount"])
def test_another_reason_is_not_the_nodes(reason):
    assert of_ended_pod(reason, "") is None


@pytest.mark.parametrize(
    ("reason", "text", "kind"),
    [
        (
            "Terminated",
            "Pod was terminated in response to imminent node shutdown.",
            Kind.NODE_SHUTDOWN,
        ),
        ("", "Pod was rejected as the node is shutting down: node shutdown", Kind.NODE_SHUTDOWN),
        ("NodeLost", "Node gpu-1 which was running pod x is unresponsive", Kind.NODE_LOST),
        ("New", "Pod was rejected: x", Kind.NODE_REFUSED),
        ("New", "x", Kind.FAILED),
        ("", "", Kind.FAILED),
    ],
)
def test_a_failed_pod_tells_why(reason, text, kind):
    assert of_failed_status(reason, text) == Fault(kind, is_final=True)


@pytest.mark.parametrize(
    ("reason", "text", "kind"),
    [
        (
            "PreemptionByScheduler",
            "preempting to accommodate a higher priority pod",
            Kind.PREEMPTED,
        ),
        ("DeletionByTaintManager", "deleting due to NoExecute taint", Kind.TAINTED),
        ("DeletionByDeviceTaintManager", "", Kind.TAINTED),
        ("EvictionByEvictionAPI", "Eviction API: evicting", Kind.EVICTED),
        ("DeletionByPodGC", "PodGC: node no longer exists", Kind.NODE_LOST),
        ("TerminationByKubelet", "Pod was preempted by Kubelet", Kind.PREEMPTED),
        ("TerminationByKubelet", "terminated in response to node shutdown", Kind.NODE_SHUTDOWN),
        ("New", "", Kind.EVICTED),
    ],
)
def test_a_disruption_tells_who_ends_the_pod(reason, text, kind):
    assert of_disruption(reason, text) == Fault(kind, is_final=True)

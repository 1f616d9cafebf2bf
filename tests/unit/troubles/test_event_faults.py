"""What an event says is wrong, and what ends that."""

import pytest

from gpuspawner.troubles.event_faults import Until, cancels, of_event, of_volume
from gpuspawner.troubles.trouble import About, Fault, Kind
from tests.unit.makers.starts import event, warning

ASSIGNED = "Successfully assigned hub/jupyter-ann to gpu-1"


WARNINGS = {
    (Kind.IMAGE_MISSING, Until.IMAGE): {"Failed": 'Failed to pull image "a:1": manifest unknown'},
    (Kind.PULL_BACK_OFF, Until.IMAGE): {
        "Failed": "Error: ErrImagePull",
        "BackOff": 'Back-off pulling image "a:1"',
    },
    (Kind.IMAGE_NAME, Until.IMAGE): {
        "InspectFailed": 'Failed to apply default image tag "A b": couldn\'t parse image name'
    },
    (Kind.IMAGE_NEVER_PULLED, Until.IMAGE): {
        "ErrImageNeverPull": 'Container image "a" is not present with pull policy of Never'
    },
    (Kind.PULL_SECRET, Until.IMAGE): {
        "FailedToRetrieveImagePullSecret": "Unable to retrieve some image pull secrets (regcred)"
    },
    (Kind.SECRET_MISSING, Until.RUNS): {"Failed": 'Error: secret "a" not found'},
    (Kind.CONTAINER_CREATION, Until.RUNS): {"Failed": "Error: odd"},
    (Kind.CRASH_LOOP, Until.READY): {
        "BackOff": "Back-off restarting failed container notebook in pod jupyter-ann_hub(5f1c)"
    },
    (Kind.POST_START_HOOK, Until.READY): {"FailedPostStartHook": "PostStartHook failed"},
    (Kind.NOT_READY, Until.READY): {"Unhealthy": "Readiness probe failed: x"},
    (Kind.VOLUME_MOUNT, Until.CONTAINERS): {
        "FailedMount": 'MountVolume.SetUp failed for volume "a" : x',
        "FailedMapVolume": "MapVolume.SetUpDevice failed",
    },
    (Kind.VOLUME_ATTACH, Until.CONTAINERS): {"FailedAttachVolume": "AttachVolume.Attach failed"},
    (Kind.RUNTIME, Until.CONTAINERS): {
        "FailedCreatePodSandBox": 'no runtime for "nvidia" is configured'
    },
    (Kind.NETWORK, Until.CONTAINERS): {"NetworkNotReady": "network is not ready"},
    (Kind.DEVICES_UNPREPARED, Until.CONTAINERS): {
        "FailedPrepareDynamicResources": "prepare dynamic resources: error preparing devices"
    },
    (Kind.DEVICE_TAKEN, Until.NEVER): {
        "UnexpectedAdmissionError": (
            "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu."
            " Requested: 1, Available: 0, which is unexpected"
        ),
    },
    (Kind.NODE_PRESSURE, Until.NEVER): {"Evicted": "The node had condition: [DiskPressure]. "},
    (Kind.NODE_FULL, Until.NEVER): {"OutOfcpu": "Node didn't have enough resource: cpu"},
    (Kind.NODE_LOST, Until.LATER): {"NodeNotReady": "Node is not ready"},
    (Kind.UNKNOWN, Until.LATER): {"NewWarning": "in new words"},
}


@pytest.mark.parametrize(
    ("reason", "message", "kind", "until"),
    [(*it, *what) for what, rows in WARNINGS.items() for it in rows.items()],
)
@pytest.mark.parametrize("prefix", ["", "(combined from similar events): "])
def test_a_warning_tells_what_is_wrong_and_what_ends_it(reason, message, kind, until, prefix):
    message = f"{prefix}{message}"
    faults, found = of_event(warning(reason, message))

    assert [it.kind for it in faults] == [kind]
    assert found is until


@pytest.mark.parametrize(
    "harmless",
    [
        event("Scheduled", ASSIGNED),
        event("Pulling", 'Pulling image "a"'),
        event("Killing", "Stopping container notebook"),
        event("Evicted", "Evicted pod: Underutilized"),
        event("", ""),
        # These warnings are read elsewhere, or harmless.
        warning("FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu."),
        warning("NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached"),
        warning(
            "DNSConfigForming",
            "Nameserver limits were exceeded, some nameservers have been omitted",
        ),
        warning("MissingClusterDNS", "kubelet does not have ClusterDNS IP configured"),
        warning("FailedScaleUp", "Node scale up in zones a failed: GCE quota exceeded."),
        warning("VolumePermissionChangeInProgress", "Setting volume ownership is taking long"),
        warning("AlreadyMountedVolume", "The requested fsGroup is 100, but the volume has 0"),
    ],
    ids=lambda it: it.reason,
)
def test_what_is_normal_harmless_or_read_elsewhere_is_no_trouble(harmless):
    assert of_event(harmless)[0] == []


@pytest.mark.parametrize(
    ("where", "is_final", "until"),
    [("", True, Until.NEVER), (" (in kube-scheduler memory)", False, Until.LATER)],
    ids=["it ran", "it was only taken back"],
)
def test_a_preempted_pod_never_starts_unless_it_was_only_taken_back(where, is_final, until):
    faults, found = of_event(event("Preempted", f"Preempted by pod 81b2 on node gpu-1{where}"))

    assert [(it.kind, it.is_final) for it in faults] == [(Kind.PREEMPTED, is_final)]
    assert found is until


@pytest.mark.parametrize("reason", ["TaintManagerEviction", "DeviceTaintManagerEviction"])
def test_a_deletion_for_a_taint_can_be_cancelled(reason):
    marked = event(reason, "Marking for deletion Pod hub/jupyter-ann")
    cancelled = event(reason, "Cancelling deletion of Pod hub/jupyter-ann")

    assert [it.kind for it in of_event(marked)[0]] == [Kind.TAINTED]
    assert of_event(cancelled)[0] == []
    assert (cancels(marked), cancels(cancelled)) == (False, True)


PV = "pvc-5573a8c6-42f7-490d-8482-c50384ee47c2"
IN_USE = f'Multi-Attach error for volume "{PV}" Volume is already '


@pytest.mark.parametrize(
    ("text", "holders"),
    [
        pytest.param(
            f"{IN_USE}used by pod(s) jupyter-jl102-7bb67f57f6-tr6z2",
            ("jupyter-jl102-7bb67f57f6-tr6z2",),
            id="jupyter-infra/jupyter-k8s#235",
        ),
        pytest.param(
            f"{IN_USE}used by pod(s) jupyter-ann, jupyter-ann--two and 2 pod(s) in different"
            " namespaces",
            ("jupyter-ann", "jupyter-ann--two"),
            id="two and others",
        ),
        pytest.param(f"{IN_USE}used by 2 pod(s) in different namespaces", (), id="others only"),
        pytest.param(
            f"{IN_USE}exclusively attached to one node and can't be attached to another",
            (),
            id="jupyterhub/zero-to-jupyterhub-k8s#2981",
        ),
        pytest.param(f'{IN_USE}attached to node "gpu-1"', ("gpu-1",), id="the node"),
        pytest.param(
            f'AttachVolume.Attach failed for volume "{PV}" : The volume v cannot be attached to the'
            " node b since it is already attached to the node a",
            ("a",),
            id="Longhorn",
        ),
    ],
)
def test_a_volume_in_use_tells_who_has_it(text, holders):
    assert of_volume(text, "FailedAttachVolume") == [
        Fault(Kind.VOLUME_IN_USE, About(volume=PV), holders=holders)
    ]


ATTACH = f'AttachVolume.Attach failed for volume "{PV}" : '
CODE = "rpc error: code = {} desc = "
ELSEWHERE = {
    "GCE": (
        "googleapi: Error 400: RESOURCE_IN_USE_BY_ANOTHER_RESOURCE - The disk resource"
        " 'projects/p/zones/a/disks/d' is already being used by 'projects/p/zones/a/instances/g'"
    ),
    "EBS": (
        f'{CODE.format("Internal")}Could not attach volume "vol-1" to node "i-2": VolumeInUse:'
        " vol-1 is already attached to an instance"
    ),
    "Azure": (
        "disk(/subscriptions/s/disks/d) already attached to node(/subscriptions/s/providers/"
        "Microsoft.Compute/virtualMachines/aks-1), could not be attached to node(aks-2)"
    ),
    "Azure, detaching": (
        "Cannot attach data disk 'd' to VM 'v' because the disk is currently being detached"
    ),
    "OpenStack": "disk 5 path /dev/vdb is attached to a different instance (6)",
    "vSphere": f"{CODE.format('Internal')}The resource 'volume' is in use.",
    "Hetzner": "volume is already attached to a server, please detach it first",
    "DigitalOcean": "volume 1 is attached to the wrong droplet (2)",
    "Ceph": "rbd image kubernetes/i is still being used",
    "ReadWriteOncePod": (
        "volume uses the ReadWriteOncePod access mode and is already in use by another pod"
    ),
    "Kubernetes": "volume attachment is being deleted",
}


@pytest.mark.parametrize("text", ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_volume_that_is_attached_elsewhere_is_in_use_in_the_words_of_each_driver(text):
    assert of_volume(ATTACH + text, "FailedAttachVolume") == [
        Fault(Kind.VOLUME_IN_USE, About(volume=PV))
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{CODE.format('ResourceExhausted')}no more volumes", Kind.VOLUME_LIMIT),
        ("AttachmentLimitExceeded: Exceeded max attachments", Kind.VOLUME_LIMIT),
        ("CSINode n does not contain driver ebs.csi.aws.com", Kind.VOLUME_ATTACH),
        (f"{CODE.format('DeadlineExceeded')}context deadline exceeded", Kind.VOLUME_ATTACH),
    ],
)
def test_a_node_with_no_place_for_a_volume_is_told_from_one_that_is_slow(text, kind):
    assert of_volume(ATTACH + text, "FailedAttachVolume") == [Fault(kind, About(volume=PV))]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(
            "Unable to attach or mount volumes: unmounted volumes=[etc-gitconfig],"
            " unattached volumes=[home files etc-gitconfig]: timed out waiting for the condition",
            ["etc-gitconfig"],
            id="berkeley-dsep-infra/datahub#3313",
        ),
        pytest.param(
            'Unable to mount volumes for pod "jupyter-ablekh_sbdh(f5f5)": timeout expired waiting'
            ' for volumes to attach/mount for pod "sbdh"/"jupyter-ablekh". list of'
            " unattached/unmounted volumes=[volume-ablekh]",
            ["volume-ablekh"],
            id="jupyterhub/zero-to-jupyterhub-k8s#628",
        ),
        pytest.param(
            "Unable to attach or mount volumes: unmounted volumes=[a b], unattached volumes=[],"
            " failed to process volumes=[]: context deadline exceeded",
            ["a", "b"],
            id="1.36",
        ),
        pytest.param("unmounted volumes=[]", [""], id="none"),
    ],
)
def test_each_volume_that_is_waited_for_is_named(text, names):
    assert of_volume(text, "FailedMount") == [
        Fault(Kind.VOLUME_WAITS, About(volume=it)) for it in names
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            'MountVolume.SetUp failed for volume "etc-gitconfig" : secret "user-etc-gitconfig" not'
            " found",
            Fault(Kind.SECRET_MISSING, About(volume="etc-gitconfig", name="user-etc-gitconfig")),
            id="berkeley-dsep-infra/datahub#3313",
        ),
        pytest.param(
            'MountVolume.SetUp failed for volume "course" : configmap "c" not found',
            Fault(Kind.CONFIG_MAP_MISSING, About(volume="course", name="c")),
            id="configmap",
        ),
        pytest.param(
            f'MountVolume.SetUp failed for volume "{PV}" : applyFSGroup failed for vol x: lstat'
            " /mount/.gsutil: input/output error",
            Fault(Kind.VOLUME_MOUNT, About(volume=PV)),
            id="cal-itp/data-infra#3686",
        ),
        pytest.param(
            "error processing PVC hub/claim-ann: failed to fetch PVC from API server:"
            ' persistentvolumeclaim "claim-ann" not found',
            Fault(Kind.CLAIM_MISSING, About(claim="claim-ann")),
            id="claim",
        ),
        pytest.param("odd", Fault(Kind.VOLUME_MOUNT), id="unknown"),
    ],
)
def test_a_failed_mount_tells_its_cause(text, expected):
    assert of_volume(text, "FailedMount") == [expected]


def test_a_hostile_list_of_volumes_makes_few_faults():
    assert len(of_volume(f"unmounted volumes=[{'a ' * 4_000}]")) < 100

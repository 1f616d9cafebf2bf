"""Volumes that aren't attached or mounted: what is told of their pod."""

from __future__ import annotations

import pytest

from localcluster import Fleet
from localcluster.client import Object
from localcluster.fleet import NodeGroup
from tests.fixtures.cluster import AddNodes
from tests.localcluster.faults import ROOM, Told, pod
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

CREATING = "ContainerCreating"


def claimed(made: Object, claim: str = "home") -> Object:
    """Return the pod with a volume of this claim."""
    made["spec"]["volumes"] = [
        {"name": "home", "persistentVolumeClaim": {"claimName": claim}},
    ]
    return made


def bind(told: Told, claim: str = "home") -> str:
    """Create a claim that is bound to a volume, and return the volume's name."""
    volume = f"pv-{told.namespace}-{claim}"
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    source = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/nowhere"}}
    size = {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume}
    bound_to = {"claimRef": {"namespace": told.namespace, "name": claim}}
    told.api.create(
        "/api/v1/persistentvolumes",
        {"metadata": {"name": volume}, "spec": {**spec, **source, **bound_to}},
    )
    claims = f"{told.path}/persistentvolumeclaims"
    told.api.create(claims, {"metadata": {"name": claim}, "spec": {**spec, **size}})
    wait_for(lambda: told.api.get(f"{claims}/{claim}")["status"].get("phase") == "Bound")
    return volume


def test_a_volume_takes_its_time_to_be_attached(told: Told) -> None:
    volume = bind(told)
    told.create(claimed(pod(attach_seconds="1")))
    wait_for(lambda: told.waiting().get("reason") == CREATING)

    assert told.condition("PodReadyToStartContainers")["status"] == "False"
    assert "podIP" not in told.status()
    told.wait_for_phase("Running")
    attached = told.events()[0]
    assert told.texts()[0] == (
        # The controller's messages end in a blank if they have nothing to add.
        f'SuccessfulAttachVolume: AttachVolume.Attach succeeded for volume "{volume}" '
    )
    assert attached["source"] == {"component": "attachdetach-controller"}
    assert told.condition("PodReadyToStartContainers")["status"] == "True"


def test_a_volume_that_a_pod_on_another_node_has_is_attached_when_that_pod_has_gone(
    told: Told, add_nodes: AddNodes
) -> None:
    add_nodes(Fleet((NodeGroup("other", 1, ROOM),)))
    volume = bind(told)
    holder, waiter = claimed(pod("holder")), claimed(pod("waiter", attach_seconds="0"))
    holder["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "other-0"}
    waiter["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "gpu-0"}
    told.create(holder)
    told.wait_for_phase("Running", "holder")
    told.create(waiter)

    failed = told.wait_for_event("FailedAttachVolume", "waiter")
    assert failed["message"] == (
        f'Multi-Attach error for volume "{volume}" Volume is already used by pod(s) holder'
    )
    assert failed["type"] == "Warning"
    told.delete("holder")
    told.wait_for_phase("Running", "waiter")


def test_a_volume_of_a_node_that_is_gone_is_attached_later(told: Told) -> None:
    volume = bind(told)
    told.create(claimed(pod(attached_elsewhere_seconds="1")))

    failed = told.wait_for_event("FailedAttachVolume")
    assert failed["message"] == (
        f'Multi-Attach error for volume "{volume}" Volume is already exclusively attached to one '
        "node and can't be attached to another"
    )
    told.wait_for_phase("Running")


def test_attaching_can_fail_until_some_moment(told: Told) -> None:
    volume = bind(told)
    error = "rpc error: code = ResourceExhausted desc = the node has too many volumes"
    told.create(claimed(pod(attach_error=error, attach_error_seconds="1")))

    failed = told.wait_for_event("FailedAttachVolume")
    assert failed["message"] == f'AttachVolume.Attach failed for volume "{volume}" : {error}'
    told.wait_for_phase("Running")


def test_a_volume_that_can_never_be_mounted_keeps_its_pod_waiting(told: Told) -> None:
    volume = bind(told)
    error = "mount failed: exit status 32\nOutput: mount.nfs: Connection timed out"
    told.create(claimed(pod(mount_error=error)))

    failed = told.wait_for_event("FailedMount", count=2)

    assert failed["message"] == f'MountVolume.SetUp failed for volume "{volume}" : {error}'
    assert failed["source"] == {"component": "kubelet", "host": "gpu-0"}
    assert (told.phase(), told.waiting()["reason"]) == ("Pending", CREATING)


def test_mounting_can_work_at_last(told: Told) -> None:
    bind(told)
    told.create(claimed(pod(mount_error="stale file handle", mount_error_seconds="0.6")))

    told.wait_for_event("FailedMount")
    told.wait_for_phase("Running")


def test_a_secret_that_does_not_exist_can_not_be_mounted_until_it_does(told: Told) -> None:
    made = pod()
    made["spec"]["volumes"] = [{"name": "keys", "secret": {"secretName": "keys"}}]
    told.create(made)

    failed = told.wait_for_event("FailedMount")
    assert failed["message"] == (
        'MountVolume.SetUp failed for volume "keys" : secret "keys" not found'
    )
    told.api.create(f"{told.path}/secrets", {"metadata": {"name": "keys"}})
    told.wait_for_phase("Running")

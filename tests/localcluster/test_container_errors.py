"""Containers that can't be created or started: what is told of their pod."""

from __future__ import annotations

import pytest

from localcluster.client import Object
from tests.localcluster.faults import Told, pod
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

BROKEN_DRIVER = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
    "runc create failed: unable to start container process: error during container init: error "
    "running prestart hook #0: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\n"
    "nvidia-container-cli: initialization error: nvml error: driver not loaded"
)


def with_variable(made: Object, source: Object) -> Object:
    made["spec"]["containers"][0]["env"] = [{"name": "TOKEN", "valueFrom": source}]
    return made


def test_a_secret_that_does_not_exist_keeps_the_container_from_being_created(told: Told) -> None:
    told.create(with_variable(pod(), {"secretKeyRef": {"name": "hub", "key": "token"}}))

    assert told.wait_for_reason("CreateContainerConfigError") == 'secret "hub" not found'
    assert told.wait_for_event("Failed", count=2)["message"] == 'Error: secret "hub" not found'
    assert told.wait_for_event("Pulled")["count"] >= 2

    told.api.create(f"{told.path}/secrets", {"metadata": {"name": "hub"}})
    wait_for(lambda: "couldn't find key" in told.waiting().get("message", ""))
    assert told.waiting()["message"] == f"couldn't find key token in Secret {told.namespace}/hub"

    token = {"stringData": {"token": "x"}}
    told.api.patch(f"{told.path}/secrets/hub", token)
    told.wait_for_phase("Running")
    assert told.container()["restartCount"] == 0


def test_a_config_map_that_does_not_exist_does_so_too(told: Told) -> None:
    told.create(with_variable(pod(), {"configMapKeyRef": {"name": "settings", "key": "a"}}))

    assert told.wait_for_reason("CreateContainerConfigError") == 'configmap "settings" not found'


def test_what_is_optional_may_be_missing(told: Told) -> None:
    optional = {"name": "hub", "key": "token", "optional": True}
    told.create(with_variable(pod(), {"secretKeyRef": optional}))

    told.wait_for_phase("Running")


def test_a_container_that_the_runtime_does_not_create_waits(told: Told) -> None:
    told.create(pod(create_error="context deadline exceeded"))

    assert told.wait_for_reason("CreateContainerError") == "context deadline exceeded"
    told.wait_for_event("Failed", count=2)
    assert told.texts()[1] == "Failed: Error: context deadline exceeded"
    assert told.phase() == "Pending"


def test_a_container_that_the_runtime_does_not_start_is_started_again(told: Told) -> None:
    made = told.create(pod(run_error=BROKEN_DRIVER))

    assert told.wait_for_change_to("RunContainerError", made) == BROKEN_DRIVER
    ended = told.container()["lastState"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert ended["message"] == BROKEN_DRIVER
    assert ended["startedAt"] == "1970-01-01T00:00:00Z"
    assert "restarting failed container=notebook" in told.wait_for_reason("CrashLoopBackOff")
    assert told.texts()[1:3] == ["Created: Container created", f"Failed: Error: {BROKEN_DRIVER}"]


def test_a_pod_that_never_restarts_fails_when_its_container_is_not_started(told: Told) -> None:
    made = pod(run_error=BROKEN_DRIVER)
    made["spec"]["restartPolicy"] = "Never"
    told.create(made)

    status = told.wait_for_phase("Failed")

    [container] = status["containerStatuses"]
    assert container["state"]["terminated"]["reason"] == "StartError"
    assert told.condition("Ready")["reason"] == "PodFailed"

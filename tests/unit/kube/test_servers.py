"""The pods of servers, as the API server writes them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from gpuspawner.kube.objects import Undecodable, decode
from gpuspawner.kube.servers import GRANT, SERVER, USER, ServerAnnotations, ServerPod

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "jupyter-ann--train",
        "namespace": "jhub",
        "uid": "u",
        "labels": {USER: "ann", SERVER: "train", "app": "jupyterhub"},
        "annotations": {USER: "ann", SERVER: "train", GRANT: "{}", "other": "secret"},
        "deletionTimestamp": "2026-11-23T12:00:00Z",
    },
    "spec": {
        "activeDeadlineSeconds": 3600,
        "nodeName": "n1",
        "nodeSelector": {"gpu": "t4"},
        "containers": [
            {"name": "notebook", "resources": {"requests": {"nvidia.com/gpu": "1"}}},
        ],
    },
    "status": {"phase": "Running", "startTime": "2026-11-23T11:00:00Z"},
}


def read(**fields: Any) -> ServerPod | Undecodable:
    found = decode("ServerPod", json.dumps({**POD, **fields}).encode())
    assert isinstance(found, ServerPod | Undecodable)
    return found


def test_a_server_s_pod_has_what_tells_whose_it_is_and_when_it_ends() -> None:
    pod = read()

    assert isinstance(pod, ServerPod)
    assert pod.metadata.name == "jupyter-ann--train"
    assert pod.metadata.labels == {USER: "ann", SERVER: "train", "app": "jupyterhub"}
    # Those of others may hold secrets, such as the last applied manifest.
    assert pod.metadata.annotations == ServerAnnotations("ann", "train", "{}")
    assert "secret" not in repr(pod)
    assert pod.metadata.deletion_timestamp == "2026-11-23T12:00:00Z"
    assert pod.spec.active_deadline_seconds == 3600
    assert pod.spec.node_selector == {"gpu": "t4"}
    assert pod.status.start_time == "2026-11-23T11:00:00Z"


def running(since: str, name: str = "notebook") -> dict[str, Any]:
    return {"name": name, "state": {"running": {"startedAt": since}}}


SOON, LATER = "2026-11-23T11:25:00Z", "2026-11-23T11:30:00Z"
PULLING = {"name": "notebook", "state": {"waiting": {"reason": "ContainerCreating"}}}


@pytest.mark.parametrize(
    ("containers", "since"),
    [
        (None, None),
        ([{"name": "notebook"}], None),
        ([PULLING], None),
        ([running("soon")], None),
        ([running(SOON)], SOON),
        ([running(SOON), running(LATER, "sidecar")], SOON),
        ([running(LATER), running(SOON, "sidecar")], LATER),
        ([PULLING, running(SOON, "sidecar")], None),
        ([running(SOON, "renamed"), running(LATER, "sidecar")], LATER),
    ],
)
def test_a_server_runs_since_its_own_image_was_pulled_and_not_since_a_sidecar_began(
    containers: list[dict[str, Any]] | None, since: str | None
) -> None:
    pod = read(status={"startTime": "2026-11-23T11:00:00Z", "containerStatuses": containers})

    assert isinstance(pod, ServerPod)
    assert pod.runs_since == (datetime.fromisoformat(since) if since else None)


@pytest.mark.parametrize(
    "metadata",
    [
        {"name": "x"},
        {"name": "x", "annotations": None, "labels": None},
        {"name": "x", "annotations": {}, "labels": {}},
        {"name": "x", "annotations": {"other": "x"}},
    ],
)
def test_a_pod_may_have_neither_labels_nor_annotations(metadata: dict[str, object]) -> None:
    pod = read(metadata=metadata, spec={}, status={})

    assert isinstance(pod, ServerPod)
    assert pod.metadata.annotations in (None, ServerAnnotations())
    assert pod.spec.active_deadline_seconds is None
    assert pod.status.start_time == ""


@pytest.mark.each_python
@pytest.mark.parametrize(
    "fields",
    [
        {"metadata": {"namespace": "jhub"}},
        {"metadata": {"name": "x", "annotations": {USER: 7}}},
        {"metadata": {"name": "x", "labels": []}},
        {"spec": {"activeDeadlineSeconds": "soon"}},
        {"spec": {"containers": {}}},
        {"status": []},
    ],
)
def test_another_shape_is_undecodable_and_keeps_its_name(fields: dict[str, Any]) -> None:
    found, sent = read(**fields), {**POD, **fields}["metadata"]

    assert isinstance(found, Undecodable)
    assert (found.kind, found.name) == ("ServerPod", sent.get("name", ""))
    assert found.namespace == sent.get("namespace", "")

"""Pulling images: what a pod's status and its events say."""

from __future__ import annotations

import re

import pytest

from tests.localcluster.faults import IMAGE, Told, pod

pytestmark = pytest.mark.nightly("it is about the local cluster, not about the package")

CREATING = {"reason": "ContainerCreating"}


def test_an_image_takes_its_time_and_is_on_the_node_afterwards(told: Told) -> None:
    told.create(pod("first", pull_seconds="1.5", pull_bytes="8123456789"))
    told.wait_for_event("Pulling", "first")
    pulling = told.status("first")
    told.wait_for_phase("Running", "first")

    assert pulling["phase"] == "Pending"
    assert pulling["containerStatuses"][0]["state"] == {"waiting": CREATING}
    assert pulling["containerStatuses"][0]["imageID"] == ""
    first, pulled, *others = told.texts("first")
    assert first == f'Pulling: Pulling image "{IMAGE}"'
    assert re.fullmatch(
        rf'Pulled: Successfully pulled image "{IMAGE}" in 1\.\d+s \(1\.\d+s including waiting\)\. '
        r"Image size: 8123456789 bytes\.",
        pulled,
    )
    assert others == ["Created: Container created", "Started: Container started"]
    assert told.events("first")[0]["involvedObject"]["fieldPath"] == "spec.containers{notebook}"
    images = told.api.get("/api/v1/nodes/gpu-0")["status"]["images"]
    assert images == [{"names": [IMAGE], "sizeBytes": 8123456789}]

    told.create(pod("second", pull_seconds="60"))
    told.wait_for_phase("Running", "second")
    assert told.texts("second")[0] == (
        f'Pulled: Container image "{IMAGE}" already present on machine '
        "and can be accessed by the pod"
    )


def test_a_node_pulls_one_image_after_the_other(told: Told) -> None:
    made = pod(pull_seconds="0.7")
    made["spec"]["containers"].append({"name": "second", "image": "example.org/second:1"})
    told.create(made)

    told.wait_for_phase("Running")

    pulled = [text for text in told.texts() if text.startswith("Pulled: ")]
    found = [re.findall(r"([\d.]+)(m?s)\b", text) for text in pulled]
    times = [[float(n) / (1000 if unit == "ms" else 1) for n, unit in each] for each in found]
    [first, second] = [(alone, waited) for alone, waited, *_ in times]
    assert second[1] >= 2 * 0.65  # it is written in whole milliseconds
    assert second[1] - second[0] >= 0.6 > first[1] - first[0]


def test_an_image_that_two_pods_wait_for_is_pulled_once(told: Told) -> None:
    for name in ("first", "second"):
        told.create(pod(name, pull_seconds="1"))
    for name in ("first", "second"):
        told.wait_for_phase("Running", name)

    assert len(told.api.get("/api/v1/nodes/gpu-0")["status"]["images"]) == 1


def test_an_image_that_is_always_pulled_is_asked_for_even_if_the_node_has_it(told: Told) -> None:
    made = pod("second", pull_seconds="60")
    made["spec"]["containers"][0]["imagePullPolicy"] = "Always"
    told.create(pod("first", pull_seconds="0.1"))
    told.wait_for_phase("Running", "first")
    told.create(made)

    told.wait_for_phase("Running", "second")

    assert told.texts("second")[0] == f'Pulling: Pulling image "{IMAGE}"'


def test_a_node_can_ask_for_time_for_every_image_that_it_lacks(told: Told) -> None:
    told.annotate_node(pull_seconds="0.3")

    told.create(pod())
    told.wait_for_phase("Running")

    assert told.texts()[0] == f'Pulling: Pulling image "{IMAGE}"'


def test_an_image_that_does_not_exist_is_pulled_again_and_again(told: Told) -> None:
    told.create(pod(pull_error="not-found"))
    backing_off = told.wait_for_reason("ImagePullBackOff")
    told.wait_for_event("Pulling", count=2)

    error = (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{IMAGE}": '
        f'failed to resolve reference "{IMAGE}": {IMAGE}: not found'
    )
    assert backing_off == f'Back-off pulling image "{IMAGE}": ErrImagePull: {error}'
    seen = {event["reason"] + ": " + event["message"]: event for event in told.events()}
    assert seen.keys() == {
        f'Pulling: Pulling image "{IMAGE}"',
        f'Failed: Failed to pull image "{IMAGE}": {error}',
        "Failed: Error: ErrImagePull",
        f'BackOff: Back-off pulling image "{IMAGE}"',
        "Failed: Error: ImagePullBackOff",
    }
    types = {text: event["type"] for text, event in seen.items()}
    assert types[f'BackOff: Back-off pulling image "{IMAGE}"'] == "Normal"
    assert types["Failed: Error: ErrImagePull"] == "Warning"
    assert told.phase() == "Pending"
    assert told.condition("Ready") == {
        "status": "False",
        "reason": "ContainersNotReady",
        "message": "containers with unready status: [notebook]",
    }


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("unauthorized", "pull access denied, repository does not exist or may require"),
        ("forbidden", "failed to fetch anonymous token: unexpected status from GET request to"),
        ("unreachable", "dial tcp 192.0.2.7:443: i/o timeout"),
        ("rate-limit", "429 Too Many Requests - Server message: toomanyrequests: You have"),
        ("no-platform", "no match for platform in manifest: not found"),
        ("no-space", "no space left on device"),
    ],
)
def test_an_image_s_name_may_say_why_it_cannot_be_pulled(
    told: Told, fault: str, words: str
) -> None:
    told.create(pod(image=f"{fault}.localcluster.invalid/lab:2"))

    assert words in told.wait_for_reason("ImagePullBackOff")


def test_a_registry_that_is_unavailable_is_a_reason_of_its_own(told: Told) -> None:
    told.create(pod(pull_error="registry-unavailable"))

    assert told.wait_for_reason("RegistryUnavailable") == (
        f"image pull failed for {IMAGE} because the registry is unavailable: "
        "pinging container registry registry.example.org: 503 Service Unavailable"
    )


def test_a_registry_that_is_reached_at_last_starts_the_pod(told: Told) -> None:
    told.create(pod(pull_error="unreachable", pull_error_times="2", pull_seconds="0.1"))

    told.wait_for_phase("Running")

    counts = {text: event["count"] for text, event in zip(told.texts(), told.events(), strict=True)}
    assert counts[f'Pulling: Pulling image "{IMAGE}"'] == 3
    assert counts["Failed: Error: ErrImagePull"] == 2


def test_an_image_name_that_cannot_be_read_is_never_pulled(told: Told) -> None:
    told.create(pod(image="registry.example.org/Lab:1"))

    message = (
        'Failed to apply default image tag "registry.example.org/Lab:1": couldn\'t parse image '
        'name "registry.example.org/Lab:1": invalid reference format: repository name (Lab) '
        "must be lowercase"
    )
    assert told.wait_for_reason("InvalidImageName") == message
    assert told.texts()[:2] == [f"InspectFailed: {message}", "Failed: Error: InvalidImageName"]


def test_an_image_that_may_not_be_pulled_is_missing(told: Told) -> None:
    made = pod(pull_seconds="0.1")
    made["spec"]["containers"][0]["imagePullPolicy"] = "Never"
    told.create(made)

    assert told.wait_for_reason("ErrImageNeverPull") == (
        f'Container image "{IMAGE}" is not present with pull policy of Never'
    )

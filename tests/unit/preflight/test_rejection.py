import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.preflight.rejection import (
    Bound,
    Breach,
    Denied,
    Insecure,
    Missing,
    Of,
    OutOfRange,
    OverQuota,
    QuotaDemands,
    QuotaUncounted,
    Rejection,
    Unexplained,
    Use,
    WebhookFailed,
    message,
    read,
    unit_of,
)


@pytest.mark.parametrize(
    ("resource", "unit"),
    [
        ("requests.cpu", "cpu"),
        ("limits.memory", "memory"),
        ("requests.ephemeral-storage", "ephemeral-storage"),
        ("gold.storageclass.storage.k8s.io/requests.storage", "storage"),
        ("gold.storageclass.storage.k8s.io/persistentvolumeclaims", ""),
        ("requests.nvidia.com/gpu", ""),
        ("count/pods", ""),
        ("example.com/memory", ""),
    ],
)
def test_a_resource_has_its_unit_under_every_name(resource, unit):
    assert unit_of(resource) == unit


pytestmark = pytest.mark.each_python

GI = 2**30
GPU = "nvidia.com/gpu"
FORBIDDEN = 'pods "jupyter-alice-cvl29" is forbidden: '
WEBHOOK = 'admission webhook "images.example.com" '
FAKE = "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"
CODES = 400, 403, 409, 429, 500


def status(text):
    return {"kind": "Status", "message": text}


def cause(text, code=403):
    rejection = read(code, status(text), Of.POD)
    return rejection.cause if rejection else None


def test_a_quota_is_read_with_all_its_figures():
    said = (
        "exceeded quota: team, requested: requests.cpu=1500m,requests.memory=1500M,"
        "requests.nvidia.com/gpu=2, used: requests.cpu=500m,requests.memory=0,"
        "requests.nvidia.com/gpu=3, limited: requests.cpu=1,requests.memory=1Gi,"
        "requests.nvidia.com/gpu=4"
    )

    assert cause(FORBIDDEN + said) == OverQuota(
        (
            Use("requests.cpu", 1500, 500, 1000),
            Use("requests.memory", 1_500_000_000, 0, GI),
            Use("requests.nvidia.com/gpu", 2, 3, 4),
        )
    )


def test_a_quota_of_a_storage_class_is_in_bytes():
    resource = "gold.storageclass.storage.k8s.io/requests.storage"
    figures = f"requested: {resource}=2Gi, used: {resource}=0, limited: {resource}=1Gi"
    said = f"exceeded quota: st, {figures}"

    read_cause = cause('persistentvolumeclaims "claim-a" is forbidden: ' + said)

    assert read_cause == OverQuota((Use(resource, 2 * GI, 0, GI),))


def test_a_quota_that_requires_resources_names_each_of_them():
    said = (
        "failed quota: mem: must specify limits.memory for: notebook,side; requests.cpu for: side"
    )

    assert cause(FORBIDDEN + said) == QuotaDemands(("limits.memory", "requests.cpu"))


def test_a_quota_that_is_not_counted_yet_is_recognized():
    said = "status unknown for quota: gpu, resources: requests.nvidia.com/gpu"

    assert cause(FORBIDDEN + said) == QuotaUncounted()


def test_every_bound_of_a_limit_range_is_read():
    said = (
        "[maximum memory usage per Container is 1Gi, but limit is 4Gi, maximum nvidia.com/gpu "
        "usage per Container is 1, but limit is 2, minimum cpu usage per Pod is 1, but request is "
        "500m, maximum memory usage per Pod is 2Gi.  No limit is specified, maximum storage usage "
        "per PersistentVolumeClaim is 1Gi, but request is 2Gi]"
    )

    assert cause(FORBIDDEN + said) == OutOfRange(
        (
            Breach("memory", Bound.MAXIMUM, GI, 4 * GI),
            Breach(GPU, Bound.MAXIMUM, 1, 2),
            Breach("cpu", Bound.MINIMUM, 1000, 500),
            Breach("memory", Bound.MAXIMUM, 2 * GI, None),
            Breach("storage", Bound.MAXIMUM, GI, 2 * GI),
        )
    )


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (
            'violates PodSecurity "restricted:latest": runAsNonRoot != true (pod must not)',
            Insecure("restricted"),
        ),
        ('pod rejected: RuntimeClass "nvidia" not found', Missing("RuntimeClass", "nvidia")),
        ("no PriorityClass with name high was found", Missing("PriorityClass", "high")),
        (
            'error looking up service account hub/user: serviceaccount "user" not found',
            Missing("ServiceAccount", "user"),
        ),
        (
            "ValidatingAdmissionPolicy 'pol' with binding 'bin' denied request: from 'quay' only",
            Denied("from 'quay' only"),
        ),
        (
            "memory max limit to request ratio per Pod is 2, but provided ratio is 10.0",
            Unexplained(),
        ),
        ("the integer value of priority (5) must not be provided in pod spec", Unexplained()),
        ("unable to create new content in namespace x because it is terminated", Unexplained()),
        ("exceeded quota: q, requested: pods=x, used: pods=1, limited: pods=1", Unexplained()),
        ("exceeded quota: q, requested: a=1, used: b=1, limited: c=1", Unexplained()),
        ("something of a plugin of 2031", Unexplained()),
    ],
)
def test_the_text_of_each_admission_plugin_is_recognized(said, known):
    assert cause(FORBIDDEN + said) == known


def test_an_invalid_object_is_a_rejection():
    text = 'Pod "a" is invalid: spec.containers[0].image: Required value'

    assert read(422, status(text), Of.HOME) == Rejection(Of.HOME, Unexplained(), text)


@pytest.mark.parametrize(
    ("code", "text", "known"),
    [
        (404, 'namespaces "jhub-alice" not found', Missing("Namespace", "jhub-alice")),
        (400, f"{WEBHOOK}denied the request without explanation", Denied("")),
        (
            500,
            'Internal error occurred: failed calling webhook "images.example.com": failed to call',
            WebhookFailed("images.example.com"),
        ),
        *((code, f"{WEBHOOK}denied the request: {FAKE}", Denied(FAKE)) for code in CODES),
    ],
    ids=["no namespace", "no reason", "a webhook that fails", *CODES],
)
def test_the_cause_of_each_status_is_recognized(code, text, known):
    """A webhook's text is never parsed as another cause."""
    assert cause(text, code) == known


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (400, f"{WEBHOOK}does not support dry run"),
        (401, "Unauthorized"),
        (409, 'Operation cannot be fulfilled on resourcequotas "gpu": the object was modified'),
        (429, "too many requests"),
        (500, "etcdserver: request timed out"),
        (503, "apiserver is shutting down"),
        (201, ""),
    ],
)
def test_a_fault_that_says_nothing_about_the_pod_is_no_rejection(code, text):
    assert cause(text, code) is None


def test_a_body_can_be_an_object_a_text_or_bytes():
    text = FORBIDDEN + 'pod rejected: RuntimeClass "nvidia" not found'
    body = json.dumps(status(text))

    assert read(403, body, Of.POD) == read(403, status(text), Of.POD)
    assert read(403, body.encode(), Of.POD) == read(403, body, Of.POD)


def test_a_webhooks_text_becomes_one_short_printable_line():
    said = "no\n[I 2026 hub] Granted \u202eroot\x1b[31m " + "x" * 10_000

    denied = cause(f"{WEBHOOK}denied the request: {said}")

    assert denied.said.startswith("no [I 2026 hub] Granted root [31m xxx")
    assert denied.said.isprintable()
    assert len(denied.said) == 300


@given(st.integers(100, 599), st.text() | st.binary() | st.none() | st.lists(st.text()))
def test_every_answer_can_be_parsed(code, body):
    rejection = read(code, body, Of.POD)

    assert rejection is None or rejection.text.isprintable()


@given(st.text())
def test_every_text_can_be_parsed(said):
    for text in (said, FORBIDDEN + said, f"{FORBIDDEN}exceeded quota: q, requested: {said}"):
        rejection = read(403, status(text), Of.POD)
        assert rejection.text == message({"message": text})

"""Everything that goes wrong with a start, from the pod and its events together."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.meta import moment
from gpuspawner.kube.startup import StartingPod
from gpuspawner.troubles.pod_troubles import troubles
from gpuspawner.troubles.trouble import About, Exit, Kind
from tests.unit.makers.starts import (
    CLOUD_METADATA,
    IMAGE,
    NOTEBOOK,
    RUNS,
    at,
    condition,
    ended,
    event,
    start,
    waiting,
    warning,
)

RESOLVE = (
    f'rpc error: code = NotFound desc = failed to pull and unpack image "{IMAGE}": failed to'
    f' resolve reference "{IMAGE}": {IMAGE}: not found'
)
PULL_FAILS = [
    event("Pulling", f'Pulling image "{IMAGE}"', 10, container=NOTEBOOK),
    warning("Failed", f'Failed to pull image "{IMAGE}": {RESOLVE}', 12, container=NOTEBOOK),
    warning("Failed", "Error: ErrImagePull", 12, container=NOTEBOOK),
    warning("BackOff", f'Back-off pulling image "{IMAGE}"', 13, container=NOTEBOOK),
    warning("Failed", "Error: ImagePullBackOff", 14, container=NOTEBOOK),
]


def only(found):
    assert len(found) == 1, found
    return found[0]


def kinds(found):
    return [it.kind for it in found]


def test_a_start_that_goes_well_is_in_no_trouble():
    assert troubles(StartingPod(), []) == ()
    assert troubles(start(node="gpu-1", notebook=RUNS), PULL_FAILS[:1]) == ()


def test_what_ends_the_start_comes_first_and_what_is_over_last():
    pod = start(node="gpu-1", notebook=waiting("ErrImagePull", RESOLVE))
    mount = warning("FailedMount", 'MountVolume.SetUp failed for volume "home" : x', 5)
    new = warning("New", "in new words", 50)

    assert kinds(troubles(pod, [new, mount])) == [
        Kind.IMAGE_MISSING,
        Kind.UNKNOWN,
        Kind.VOLUME_MOUNT,
    ]


def test_an_older_pods_troubles_are_not_its_own():
    older = event("Preempted", "Preempted by pod 81b2", 1, uid="older")

    assert troubles(start(), [older]) == ()


def test_a_pod_whose_lists_and_times_are_null_is_read():
    plain = {
        "metadata": {"creationTimestamp": None, "deletionTimestamp": None},
        "spec": {"containers": None, "initContainers": None, "volumes": None},
        "status": {
            "startTime": None,
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": None}],
            "containerStatuses": [
                {"name": NOTEBOOK, "state": None, "lastState": {"terminated": {"exitCode": 1}}}
            ],
            "initContainerStatuses": None,
        },
    }
    said = {"reason": "Failed", "message": "", "count": None, "series": None, "eventTime": None}

    found = troubles(msgspec.convert(plain, StartingPod), [msgspec.convert(said, Event)])

    assert kinds(found) == [Kind.CONTAINER_CREATION]


def test_a_crash_tells_the_exit_and_the_last_words_beside_the_loop():
    pod = start(
        node="gpu-1",
        notebook={
            **waiting("CrashLoopBackOff", "back-off 20s restarting failed container=notebook"),
            "restartCount": 2,
            "lastState": ended(1, "Error", "ModuleNotFoundError: No module named 'jupyterhub'"),
        },
    )
    crashed, loop = troubles(pod, [])

    assert (crashed.kind, crashed.attempts, crashed.is_final) == (Kind.CRASHED, 2, False)
    assert crashed.exit == Exit(
        1, 0, "Error", 1, "ModuleNotFoundError: No module named 'jupyterhub'"
    )
    assert crashed.text == "ModuleNotFoundError: No module named 'jupyterhub'"
    assert (loop.kind, loop.attempts) == (Kind.CRASH_LOOP, 2)


def test_a_server_that_runs_after_a_crash_is_ready_only_if_it_says_so():
    crashed = {"lastState": ended(1), "restartCount": 1}
    running = {"running": {"startedAt": at(80)}}

    for ready in (False, True):
        pod = start(notebook={"state": running, "ready": ready, **crashed})
        assert only(troubles(pod, [])).is_over is ready


def test_a_probe_that_fails_after_a_crash_says_less_than_the_crash():
    pod = start(
        notebook={
            "state": {"running": {"startedAt": at(80)}},
            "lastState": ended(1, "Error", "ImportError: torch"),
            "restartCount": 1,
        }
    )
    fails = warning("Unhealthy", "Readiness probe failed: refused", 100, container=NOTEBOOK)

    assert kinds(troubles(pod, [fails])) == [Kind.CRASHED, Kind.NOT_READY]


def test_a_missing_secret_is_over_once_the_container_runs():
    failed = warning("Failed", 'Error: secret "a" not found', 5, container=NOTEBOOK)
    config = waiting("CreateContainerConfigError", 'secret "a" not found')
    missing = only(troubles(start(notebook=config), [failed]))

    assert (missing.kind, missing.about.name) == (Kind.SECRET_MISSING, "a")
    assert not missing.is_over
    assert only(troubles(start(notebook=RUNS), [failed])).is_over


def test_an_init_container_that_failed_once_is_over_when_it_is_done():
    done = {"state": ended(0, "Completed"), "lastState": ended(1), "restartCount": 1}

    assert only(troubles(start(init=done), [])).is_over


def test_an_image_that_does_not_exist_is_one_final_trouble_beside_the_back_off():
    pod = start(node="gpu-1", notebook=waiting("ErrImagePull", RESOLVE))
    missing, back_off = troubles(pod, PULL_FAILS)

    assert (missing.kind, missing.is_final) == (Kind.IMAGE_MISSING, True)
    assert missing.about == About(container=NOTEBOOK, image=IMAGE)
    assert (missing.began, missing.last) == (moment(at(12)), moment(at(12)))
    assert missing.text == RESOLVE
    assert (back_off.kind, back_off.is_final) == (Kind.PULL_BACK_OFF, False)
    assert back_off.about == missing.about


def test_a_pull_that_succeeds_at_last_is_over():
    pulled = event("Pulled", f'Successfully pulled image "{IMAGE}"', 40, container=NOTEBOOK)
    found = troubles(start(node="gpu-1"), [*PULL_FAILS, pulled])

    assert {it.is_over for it in found} == {True}
    assert {it.is_final for it in found} == {False}


def test_the_pull_of_one_container_does_not_end_that_of_another():
    pulled = event("Pulled", 'Successfully pulled image "a"', 9, container=CLOUD_METADATA)

    assert troubles(start(node="gpu-1"), [*PULL_FAILS, pulled])[0].is_final


def test_attempts_add_up_over_events_that_are_told_again():
    first = warning("Failed", f'Failed to pull image "{IMAGE}": dial tcp', 1, container=NOTEBOOK)
    again = warning(
        "Failed", f'Failed to pull image "{IMAGE}": dial tcp', 1, container=NOTEBOOK, count=3
    )
    other = warning(
        "Failed", f'Failed to pull image "{IMAGE}": i/o timeout', 9, container=NOTEBOOK, count=2
    )

    trouble = only(troubles(start(), [first, again, other]))

    assert (trouble.kind, trouble.attempts) == (Kind.REGISTRY_UNREACHABLE, 5)
    assert trouble.texts == (first.message, other.message)


def test_a_device_gone_at_admission_ends_the_start():
    text = (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for"
        " nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"
    )
    pod = start(phase="Failed", reason="UnexpectedAdmissionError", message=text, node="gpu-1")
    refused = warning("UnexpectedAdmissionError", text.removeprefix("Pod was rejected: "), 3)
    trouble = only(troubles(pod, [refused]))

    assert (trouble.kind, trouble.is_final) == (Kind.DEVICE_TAKEN, True)
    assert trouble.about.resource == "nvidia.com/gpu"
    assert trouble.texts == (refused.message, text)


def test_a_device_that_breaks_is_told_of_its_container():
    device = {"resourceID": "GPU-2", "health": "Unhealthy"}
    broken = [{"name": "nvidia.com/gpu", "resources": [device]}]
    pod = start(node="gpu-1", notebook={**RUNS, "allocatedResourcesStatus": broken})
    trouble = only(troubles(pod, []))

    assert (trouble.kind, trouble.is_over, trouble.is_final) == (Kind.DEVICE_BROKEN, False, False)
    assert trouble.about == About(container=NOTEBOOK, resource="nvidia.com/gpu", name="GPU-2")


def test_a_preempted_pod_tells_that_before_its_deletion():
    pod = start(
        node="gpu-1",
        conditions=[condition("DisruptionTarget", since=8, reason="PreemptionByScheduler")],
        metadata={"deletionTimestamp": at(38)},
    )
    found = troubles(pod, [event("Preempted", "Preempted by pod 81b2 on node gpu-1", 8)])

    assert kinds(found) == [Kind.PREEMPTED, Kind.DELETED]
    assert all(it.is_final for it in found)


def test_a_lost_node_that_works_again_is_over():
    lost = warning("NodeNotReady", "Node is not ready", 30)

    for started, is_over in ((20, False), (30, False), (60, True)):
        pod = start(node="gpu-1", notebook={"state": {"running": {"startedAt": at(started)}}})
        assert only(troubles(pod, [lost])).is_over is is_over


@pytest.mark.parametrize(
    ("cancelled", "is_over"), [(None, False), (20, False), (30, True), (40, True)]
)
def test_a_taints_deletion_is_over_if_it_is_cancelled_later(cancelled, is_over):
    events = [event("TaintManagerEviction", "Marking for deletion Pod hub/jupyter-ann", 30)]
    if cancelled is not None:
        said = "Cancelling deletion of Pod hub/jupyter-ann"
        events.append(event("TaintManagerEviction", said, cancelled))

    trouble = only(troubles(start(node="gpu-1"), events))

    assert (trouble.kind, trouble.is_over) == (Kind.TAINTED, is_over)


def test_an_unschedulable_pod_has_the_schedulers_whole_text():
    text = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    said = condition("PodScheduled", "False", 1, reason="Unschedulable", message=text)
    trouble = only(troubles(start(conditions=[said]), []))

    assert (trouble.kind, trouble.text, trouble.is_final) == (Kind.UNSCHEDULABLE, text, False)


@pytest.mark.parametrize(
    ("pod", "kind"),
    [
        (start(phase="Failed"), Kind.FAILED),
        (start(phase="Succeeded"), Kind.FAILED),
        (start(metadata={"deletionTimestamp": at(9)}), Kind.DELETED),
    ],
    ids=["failed", "succeeded", "deleted"],
)
def test_a_pod_that_has_ended_or_ends_is_in_final_trouble_even_without_a_word(pod, kind):
    trouble = only(troubles(pod, []))

    assert (trouble.kind, trouble.is_final, trouble.text) == (kind, True, "")


def test_a_pod_whose_container_ended_needs_no_other_reason():
    pod = start(phase="Failed", notebook={"state": ended(1)}, restart_policy="Never")

    assert kinds(troubles(pod, [])) == [Kind.CRASHED]


def test_a_volume_in_use_names_the_claim_and_who_has_it():
    message = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) jupyter-bob'
    trouble = only(troubles(start(), [warning("FailedAttachVolume", message, 5)]))

    assert trouble.kind is Kind.VOLUME_IN_USE
    assert trouble.about == About(volume="pvc-1", claim="claim-ann")
    assert (trouble.holders, trouble.is_final) == (("jupyter-bob",), False)


def test_a_volume_of_the_pod_that_has_no_claim_gets_none():
    volumes = [
        {"name": "home", "persistentVolumeClaim": {"claimName": "claim-ann"}},
        {"name": "course"},
    ]
    message = 'MountVolume.SetUp failed for volume "course" : configmap "c" not found'
    trouble = only(troubles(start(volumes=volumes), [warning("FailedMount", message)]))

    assert trouble.about == About(volume="course", name="c")


def test_a_volume_trouble_is_over_once_a_container_is_next():
    events = [warning("FailedMount", 'MountVolume.SetUp failed for volume "home" : x', 5)]
    sandbox = [condition("PodReadyToStartContainers", since=9)]

    assert not only(troubles(start(node="gpu-1"), events)).is_over
    assert only(troubles(start(node="gpu-1", conditions=sandbox), events)).is_over


# What holds of the troubles that are read from any facts


TEXTS = [
    "Error: ErrImagePull",
    f'Failed to pull image "{IMAGE}": manifest unknown',
    'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) jupyter-bob',
    "unmounted volumes=[home a b]",
    "The node was low on resource: memory. ",
    "Marking for deletion Pod hub/jupyter-ann",
    "Cancelling deletion of Pod hub/jupyter-ann",
    'exec: "a": executable file not found in $PATH',
    "",
]
REASONS = [
    "Failed", "BackOff", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox",
    "InspectFailed", "Evicted", "Preempted", "TaintManagerEviction", "NodeNotReady", "OutOfcpu",
    "UnexpectedAdmissionError", "Unhealthy", "Pulled", "New", "",
]  # fmt: skip
events = st.builds(
    event,
    st.sampled_from(REASONS),
    st.sampled_from(TEXTS) | st.text(max_size=40),
    st.none() | st.integers(0, 120),
    container=st.sampled_from([NOTEBOOK, CLOUD_METADATA, "", "other"]),
    type_=st.sampled_from(["Warning", "Normal", ""]),
    count=st.integers(-1, 2**40),
)
states = st.sampled_from([{}, RUNS, waiting("ErrImagePull"), {"state": ended(1)}])
pods = st.builds(
    start,
    node=st.sampled_from(["", "gpu-1"]),
    phase=st.sampled_from(["", "Pending", "Running", "Failed", "Succeeded", "Unknown"]),
    reason=st.sampled_from([*REASONS, "NodeLost"]),
    message=st.sampled_from(TEXTS) | st.text(max_size=40),
    conditions=st.none()
    | st.lists(
        st.builds(
            condition,
            st.sampled_from(["PodScheduled", "DisruptionTarget", "PodReadyToStartContainers", ""]),
            st.sampled_from(["True", "False", "Unknown"]),
            message=st.text(max_size=20),
        ),
        max_size=3,
    ),
    notebook=states,
    init=states,
    restart_policy=st.sampled_from(["Always", "OnFailure", "Never", ""]),
)


@pytest.mark.each_python
@given(pods, st.lists(events, max_size=6), st.randoms())
def test_any_facts_are_read_the_same_in_any_order(pod, said, random):
    found = troubles(pod, said)
    shuffled = list(said)
    random.shuffle(shuffled)

    assert troubles(pod, shuffled) == found


@pytest.mark.each_python
@given(pods, st.lists(events, max_size=6))
def test_no_warnings_text_is_lost(pod, said):
    texts = {text for it in troubles(pod, said) for text in it.texts}
    told = {
        it.message
        for it in said
        if it.type == "Warning" and it.message and it.reason not in ("TaintManagerEviction",)
    }

    assert told <= texts


@pytest.mark.each_python
@given(pods, st.lists(events, max_size=6))
def test_a_pod_that_has_ended_always_has_a_final_trouble(pod, said):
    has_ended = pod.status.phase in ("Failed", "Succeeded")

    assert not has_ended or any(it.is_final for it in troubles(pod, said))


@pytest.mark.each_python
@given(pods, st.lists(events, max_size=4))
def test_what_is_over_is_never_final(pod, said):
    assert not any(it.is_final and it.is_over for it in troubles(pod, said))

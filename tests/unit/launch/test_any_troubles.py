"""What holds of the troubles that are read from any facts."""

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.launch.troubles import troubles
from tests.unit.launch.starts import (
    CLOUD_METADATA,
    IMAGE,
    NOTEBOOK,
    RUNS,
    condition,
    ended,
    event,
    start,
    waiting,
)

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
    "Failed",
    "BackOff",
    "FailedMount",
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
    "InspectFailed",
    "Evicted",
    "Preempted",
    "TaintManagerEviction",
    "NodeNotReady",
    "OutOfcpu",
    "UnexpectedAdmissionError",
    "Unhealthy",
    "Pulled",
    "New",
    "",
]
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


@given(pods, st.lists(events, max_size=6), st.randoms())
def test_any_facts_are_read_the_same_in_any_order(pod, said, random) -> None:
    found = troubles(pod, said)
    shuffled = list(said)
    random.shuffle(shuffled)

    assert troubles(pod, shuffled) == found


@given(pods, st.lists(events, max_size=6))
def test_no_warnings_text_is_lost(pod, said) -> None:
    texts = {text for it in troubles(pod, said) for text in it.texts}
    told = {
        it.message
        for it in said
        if it.type == "Warning" and it.message and it.reason not in ("TaintManagerEviction",)
    }

    assert told <= texts


@given(pods, st.lists(events, max_size=6))
def test_a_pod_that_has_ended_always_has_a_final_trouble(pod, said) -> None:
    has_ended = pod.status.phase in ("Failed", "Succeeded")

    assert not has_ended or any(it.is_final for it in troubles(pod, said))


@given(pods, st.lists(events, max_size=4))
def test_what_is_over_is_never_final(pod, said) -> None:
    assert not any(it.is_final and it.is_over for it in troubles(pod, said))

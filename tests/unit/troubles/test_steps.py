"""How far a start is; the long story is that of the chart's pod on a node to come."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.meta import moment
from gpuspawner.kube.startup import StartingPod
from gpuspawner.troubles.images import Pulled, Pulling
from gpuspawner.troubles.steps import Stage, Step, UsualSteps, merged, stages
from tests.unit.makers.starts import (
    CLOUD_METADATA,
    IMAGE,
    NOTEBOOK,
    TOOLS,
    at,
    condition,
    ended,
    event,
    start,
    waiting,
    warning,
)
from tests.unit.makers.trouble_tables import meaning

POOL = "https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-gpu-grp"
PRESENT = f'Container image "{TOOLS}" already present on machine'
PULLED = (
    f'Successfully pulled image "{IMAGE}" in 1m2s (1m3s including waiting). Image size: 9 bytes.'
)
STORY = [
    warning("FailedScheduling", "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", 1),
    event("TriggeredScaleUp", f"pod triggered scale-up: [{{{POOL} 0->1 (max: 4)}}]", 11),
    event("Scheduled", "Successfully assigned hub/jupyter-ann to gpu-1", 190),
    event("SuccessfulAttachVolume", 'AttachVolume.Attach succeeded for volume "pvc-1"', 195),
    event("Pulled", PRESENT, 200, container=CLOUD_METADATA),
    event("Created", "Created container", 200, container=CLOUD_METADATA),
    event("Started", "Started container", 201, container=CLOUD_METADATA),
    event("Pulling", f'Pulling image "{IMAGE}"', 203, container=NOTEBOOK),
    event("Pulled", PULLED, 266, container=NOTEBOOK),
    event("Created", "Created container", 267, container=NOTEBOOK),
    event("Started", "Started container notebook", 268, container=NOTEBOOK),
]  # fmt: skip


def told(found):
    return [(it.step, it.subject) for it in found]


def test_the_whole_story_names_pool_node_and_containers_with_their_times():
    found = stages(start(node="gpu-1"), STORY)

    assert told(found) == [
        (Step.SCHEDULING, ""),
        (Step.NODE_STARTING, POOL),
        (Step.NODE_FOUND, "gpu-1"),
        (Step.VOLUMES, ""),
        (Step.PULLING, CLOUD_METADATA),
        (Step.INITIALIZING, CLOUD_METADATA),
        (Step.PULLING, NOTEBOOK),
        (Step.STARTING, NOTEBOOK),
        (Step.RUNNING, ""),
    ]
    seconds = (0, 11, 190, 195, None, 200, 203, 266, 268)
    assert [it.since for it in found] == [None if it is None else moment(at(it)) for it in seconds]


def test_a_pull_is_known_with_all_its_figures_once_it_is_done():
    during = stages(start(), STORY[:8])
    after = stages(start(), STORY)

    assert [it.image for it in during if it.image] == [
        Pulled(TOOLS, was_there=True),
        Pulling(IMAGE),
    ]
    assert [it.image for it in after if it.image][1] == Pulled(
        IMAGE, seconds=62, with_waiting=63, size=9
    )


def test_a_restart_that_finds_the_image_does_not_hide_that_it_was_pulled():
    again = event(
        "Pulled", f'Container image "{IMAGE}" already present on machine', 300, container=NOTEBOOK
    )
    pulling = [it for it in stages(start(), [*STORY, again]) if it.subject == NOTEBOOK]

    assert pulling[0].image == Pulled(IMAGE, seconds=62, with_waiting=63, size=9)


PODS_ALONE = {
    Step.SCHEDULING: {
        "empty": StartingPod(),
        "unschedulable": (
            start(conditions=[condition("PodScheduled", "False", reason="Unschedulable")])
        ),
    },
    Step.NODE_FOUND: {
        "condition": start(conditions=[condition("PodScheduled")]),
        "node": start(node="gpu-1"),
        "no sandbox": (
            start(node="gpu-1", conditions=[condition("PodReadyToStartContainers", "False")])
        ),
        "creating": start(node="gpu-1", notebook=waiting("ContainerCreating")),
    },
    Step.PULLING: {
        "sandbox": (
            start(node="gpu-1", conditions=[condition("PodReadyToStartContainers", since=20)])
        ),
        "pull fails": start(node="gpu-1", notebook=waiting("ImagePullBackOff")),
        "init container is done": (
            start(node="gpu-1", init={"state": ended(0)}, notebook=waiting("PodInitializing"))
        ),
    },
    Step.STARTING: {
        "has its image": start(node="gpu-1", notebook=waiting("CreateContainerConfigError"))
    },
    Step.INITIALIZING: {
        "init container runs": (
            start(node="gpu-1", init={"state": {"running": {"startedAt": at(9)}}})
        ),
        "init container fails": (
            start(node="gpu-1", init={"state": ended(1)}, notebook=waiting("PodInitializing"))
        ),
    },
    Step.RUNNING: {
        "runs": start(node="gpu-1", notebook={"state": {"running": {"startedAt": at(9)}}}),
        "has run": start(node="gpu-1", notebook={**waiting("CrashLoopBackOff"), "restartCount": 3}),
        "has ended": start(node="gpu-1", notebook={"state": ended(1)}),
    },
}


@pytest.mark.parametrize(("pod", "last"), meaning(PODS_ALONE))
def test_the_pod_alone_tells_its_step_too(pod, last):
    assert stages(pod, [])[-1].step is last


def test_the_time_of_the_last_step_is_that_of_the_first_run():
    again = {"state": {"running": {"startedAt": at(90)}}, "lastState": ended(1, at_=60)}

    assert stages(start(notebook=again), [])[-1].since == moment(at(59))


def test_an_older_pods_events_are_no_step():
    older = event("Scheduled", "Successfully assigned hub/jupyter-ann to gpu-1", uid="older")

    assert told(stages(start(), [older])) == [(Step.SCHEDULING, "")]


def test_events_without_times_are_steps_without_times():
    found = stages(start(), [event("Started", "", None, container=NOTEBOOK)])

    assert [(it.step, it.since) for it in found if it.step is Step.RUNNING] == [
        (Step.RUNNING, None)
    ]


def test_a_pod_without_containers_runs_once_its_phase_says_so():
    pod = StartingPod(status=start(phase="Running").status)

    assert stages(pod, [])[-1].step is Step.RUNNING


def test_an_earlier_look_is_kept():
    before, now = stages(start(), STORY), stages(start(node="gpu-1"), [])

    assert told(merged([*before, *now])) == told(before)


PODS = [
    start(),
    start(conditions=[condition("PodScheduled", since=190)]),
    start(
        node="gpu-1",
        conditions=[
            condition("PodScheduled", since=190),
            condition("PodReadyToStartContainers", since=199),
        ],
    ),
    start(
        node="gpu-1",
        conditions=[
            condition("PodScheduled", since=190),
            condition("PodReadyToStartContainers", since=199),
        ],
        init={"state": ended(0, at_=202)},
        notebook={"state": {"running": {"startedAt": at(268)}}},
    ),
]
facts = st.lists(st.sampled_from(STORY), unique_by=lambda it: it.metadata.name)


@given(facts, facts, st.sampled_from(PODS))
def test_more_events_never_lead_back(some, more, pod):
    before, after = stages(pod, some), stages(pod, [*some, *more])

    assert after[-1].place >= before[-1].place
    assert {it.place for it in before} <= {it.place for it in after}


@given(facts, st.integers(0, len(PODS) - 2))
def test_a_pod_that_is_further_never_leads_back(events, index):
    before, after = stages(PODS[index], events), stages(PODS[index + 1], events)

    assert {it.place for it in before} <= {it.place for it in after}


@given(st.permutations(STORY), st.sampled_from(PODS))
def test_the_order_of_the_facts_does_not_matter(events, pod):
    assert stages(pod, events) == stages(pod, STORY)


@given(st.permutations(STORY), st.integers(0, len(STORY)))
def test_two_looks_merged_are_one_look_at_all(events, cut):
    pod = PODS[-1]
    looks = [*stages(pod, events[:cut]), *stages(pod, events[cut:])]

    assert merged(looks) == stages(pod, STORY)


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def stage(step, second, subject="", image=None):
    since = None if second is None else NOON + timedelta(seconds=second)
    return Stage(step, (0, 0), since, subject, image)


GROWS = [stage(Step.NODE_STARTING, 10, "gpu"), stage(Step.NODE_FOUND, 190)]
PULLS = [
    stage(Step.PULLING, None, image=Pulled("a:1", seconds=40, with_waiting=60)),
    stage(Step.STARTING, None),
]
UNTIMED = [stage(Step.SCHEDULING, None), stage(Step.NODE_FOUND, 3), stage(Step.VOLUMES, None)]
FIRST = [stage(Step.INITIALIZING, 0, "block-cloud-metadata"), stage(Step.PULLING, 2, "notebook")]
VOLUMES = [stage(Step.VOLUMES, 0), stage(Step.PULLING, 8)]
ALREADY_THERE = [
    stage(Step.PULLING, 0, image=Pulled("a:1", was_there=True)),
    stage(Step.STARTING, 0),
]
BACKWARDS = [stage(Step.SCHEDULING, 5), stage(Step.NODE_FOUND, 3)]


@pytest.mark.parametrize(
    ("earlier", "asked", "seconds"),
    [
        pytest.param(GROWS, stage(Step.NODE_STARTING, 0, "gpu"), 180, id="until the next step"),
        pytest.param(GROWS, stage(Step.NODE_STARTING, 0, "cpu"), None, id="each pool for itself"),
        pytest.param(GROWS, stage(Step.NODE_FOUND, 0), None, id="the last one hasn't ended"),
        pytest.param(VOLUMES, stage(Step.VOLUMES, 0), 8, id="volumes"),
        pytest.param(
            PULLS, stage(Step.PULLING, 0, image=Pulling("a:1")), 60, id="as the kubelet says"
        ),
        pytest.param(
            PULLS, stage(Step.PULLING, 0, image=Pulling("a:2")), None, id="each image for itself"
        ),
        pytest.param(
            ALREADY_THERE, stage(Step.PULLING, 0, image=Pulling("a:1")), None, id="it was there"
        ),
        pytest.param(UNTIMED, stage(Step.SCHEDULING, 0), None, id="begun at an unknown time"),
        pytest.param(UNTIMED, stage(Step.NODE_FOUND, 0), None, id="ended at an unknown time"),
        pytest.param(BACKWARDS, stage(Step.SCHEDULING, 0), None, id="clocks that disagree"),
        pytest.param(
            FIRST, stage(Step.INITIALIZING, 0, "block-cloud-metadata"), 2, id="a container"
        ),
        pytest.param(FIRST, stage(Step.INITIALIZING, 0, "other"), None, id="another container"),
    ],
)
def test_a_step_takes_as_long_as_in_an_earlier_start(earlier, asked, seconds):
    usual = UsualSteps()
    usual.learn(earlier)

    assert usual.seconds(asked) == seconds

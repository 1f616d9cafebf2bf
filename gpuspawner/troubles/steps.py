"""How far a start is: the steps that it has reached, and how long each took in earlier starts.

A step is reached as soon as one fact of the pod or its events shows it, and no fact takes it back.
So the steps are the same in whatever order the facts arrive, and more facts never lead back to an
earlier step.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.kueue import ADMISSION, MANAGED
from gpuspawner.kube.meta import moment
from gpuspawner.kube.startup import ConditionSince, ContainerState, StartingPod
from gpuspawner.scaling.autoscaler_events import Coming, answer
from gpuspawner.scaling.usual_times import UsualTimes
from gpuspawner.troubles.evidence import (
    NOT_YET,
    PULL_FAILS,
    SeenContainer,
    by_container,
    containers,
    earliest,
    latest,
    own,
)
from gpuspawner.troubles.images import Pulled, Pulling, read_pull


class Step(StrEnum):
    """What a start waits for; each container has its own pull, and its own start."""

    QUEUED = "queued"
    """Kueue holds the pod back until there is quota for it."""
    SCHEDULING = "scheduling"
    NODE_STARTING = "node-starting"
    """An autoscaler starts a node for the pod."""
    NODE_FOUND = "node-found"
    VOLUMES = "volumes"
    """Volumes are being attached or mounted."""
    PULLING = "pulling"
    """The image of a container is being pulled, or looked for on the node."""
    INITIALIZING = "initializing"
    """An init container is being started, or runs."""
    STARTING = "starting"
    """A container is being started."""
    RUNNING = "running"
    """All containers run."""


Place = tuple[int, int]
"""The place of a stage in a start: the container's position, and what happens to the container."""

_BEFORE_CONTAINERS = {
    Step.QUEUED: (-2, 0),
    Step.SCHEDULING: (-1, 0),
    Step.NODE_STARTING: (-1, 1),
    Step.NODE_FOUND: (-1, 2),
    Step.VOLUMES: (-1, 3),
}
_LAST: Place = (2**31, 0)


class Stage(msgspec.Struct, frozen=True):
    """A step that a start has reached.

    Attributes:
        since: When it was reached; None if no fact says it.
        subject: What it is about: the pool that grows, the node, the container.
        image: The image that is pulled, and how long that took once it is there.
    """

    step: Step
    place: Place
    since: datetime | None = None
    subject: str = ""
    image: Pulling | Pulled | None = None


def stages(pod: StartingPod, events: Iterable[Event]) -> tuple[Stage, ...]:
    """Return the stages that a start has reached, in order; the last one is the present one."""
    its, parts = own(pod, events), containers(pod)
    about = by_container(its)
    found = [*_of_pod(pod), *_of_events(its), *_of_sandbox(pod, parts), *_of_turns(parts)]
    for container in parts:
        found += _of_container(container, about.get(container.name, ()))
    found += _running(pod, parts, about)
    return merged(found)


def merged(found: Iterable[Stage]) -> tuple[Stage, ...]:
    """Return the stages in order, each once: of an earlier look and of this one, for example."""
    stages_: dict[tuple[Place, Step], Stage] = {}
    for stage in found:
        key = (stage.place, stage.step)
        known = stages_.get(key)
        stages_[key] = stage if known is None else _one(known, stage)
    return tuple(stages_[key] for key in sorted(stages_))


def _one(a: Stage, b: Stage) -> Stage:
    subjects = [it for it in (a.subject, b.subject) if it]
    images = [it for it in (a.image, b.image) if it is not None]
    return replace(
        a,
        since=earliest(a.since, b.since),
        subject=min(subjects, default=""),
        image=max(images, key=_knowledge, default=None),
    )


def _knowledge(image: Pulling | Pulled) -> tuple[object, ...]:
    """Order what is known of a pull. What was pulled is later found on the node, too."""
    if isinstance(image, Pulling):
        return (0, image.image)
    numbers = (image.seconds, image.with_waiting, image.size)
    return (1, not image.was_there, tuple(-1 if it is None else it for it in numbers), image.image)


def _of_pod(pod: StartingPod) -> Iterable[Stage]:
    created = moment(pod.metadata.creation_timestamp)
    is_queued = MANAGED in (pod.metadata.labels or {})
    if is_queued:
        yield _early(Step.QUEUED, created)
    if any(it.name == ADMISSION for it in pod.spec.scheduling_gates or ()):
        return
    yield _early(Step.SCHEDULING, None if is_queued else created)
    scheduled = _condition(pod, "PodScheduled")
    node = pod.spec.node_name
    if node or scheduled is not None:
        yield _early(Step.NODE_FOUND, _since(scheduled), node)
    if node and any(it.persistent_volume_claim or it.ephemeral for it in pod.spec.volumes or ()):
        began = moment(pod.status.start_time)
        if began is not None:
            yield _early(Step.VOLUMES, began)


_ASSIGNED = re.compile(r"Successfully assigned \S+ to (\S+)")
_VOLUME_REASONS = frozenset({
    "SuccessfulAttachVolume", "SuccessfulMountVolume", "FailedAttachVolume", "FailedMount",
    "FailedMapVolume", "VolumePermissionChangeInProgress",
})  # fmt: skip


def _of_events(events: Iterable[Event]) -> Iterable[Stage]:
    for event in events:
        coming = answer(event)
        if isinstance(coming, Coming):
            yield _early(Step.NODE_STARTING, event.began, coming.pool)
        elif event.reason == "Scheduled" and (found := _ASSIGNED.match(event.message)):
            yield _early(Step.NODE_FOUND, event.began, found[1])
        elif event.reason in _VOLUME_REASONS:
            yield _early(Step.VOLUMES, event.began)


def _early(step: Step, since: datetime | None, subject: str = "") -> Stage:
    return Stage(step, _BEFORE_CONTAINERS[step], since, subject)


def _of_sandbox(pod: StartingPod, parts: Sequence[SeenContainer]) -> Iterable[Stage]:
    """Return that the first container is next, once the pod has its volumes and its network."""
    ready = _condition(pod, "PodReadyToStartContainers")
    if ready is not None and parts:
        yield _pull(parts[0], _since(ready), None)


def _of_turns(parts: Sequence[SeenContainer]) -> Iterable[Stage]:
    """Yield that a container is next, because the one before it makes way; no event may say so."""
    for container, following in pairwise(parts):
        if _makes_way(container):
            yield _pull(following, None, None)


def _makes_way(container: SeenContainer) -> bool:
    status = container.status
    if status is None or not container.is_init:
        return _has_run(container)
    if container.is_sidecar:
        return bool(status.started)
    ended = status.state.terminated if status.state else None
    return ended is not None and not ended.exit_code


_PULLS = frozenset({"Pulling", "Pulled"})
_PULLS_FAIL = ("Failed to pull image ", "Back-off pulling image ")
_STARTS = frozenset({"Created", "Started", "FailedPostStartHook", "Unhealthy"})


def _of_container(container: SeenContainer, events: Iterable[Event]) -> Iterable[Stage]:
    for event in events:
        image = read_pull(event.text) if event.reason in _PULLS else None
        if image is not None or event.text.startswith(_PULLS_FAIL):
            began = event.began if isinstance(image, Pulling) else None
            yield _pull(container, began, image)
        if isinstance(image, Pulled) or event.reason in _STARTS:
            yield _start(container, event.began)
    status = container.status
    if status is None:
        return
    state = status.state or ContainerState()
    waits_for = state.waiting.reason if state.waiting else ""
    if waits_for in PULL_FAILS:
        yield _pull(container, None, None)
    if waits_for not in NOT_YET | PULL_FAILS or _has_run(container):
        yield _start(container, None)


def _pull(
    container: SeenContainer, since: datetime | None, image: Pulling | Pulled | None
) -> Stage:
    wanted = image or Pulling(container.spec.image)
    return Stage(Step.PULLING, (container.position, 0), since, container.name, wanted)


def _start(container: SeenContainer, since: datetime | None) -> Stage:
    step = Step.INITIALIZING if container.is_init else Step.STARTING
    return Stage(step, (container.position, 1), since, container.name)


def _has_run(container: SeenContainer) -> bool:
    status = container.status
    return bool(container.runs) or (status is not None and status.restart_count > 0)


def _running(
    pod: StartingPod, parts: Iterable[SeenContainer], about: Mapping[str, list[Event]]
) -> list[Stage]:
    """Return the last stage if each container runs, or has run."""
    main = [it for it in parts if not it.is_init]
    began = []
    for container in main:
        started = [it for it in about.get(container.name, ()) if it.reason == "Started"]
        if not started and not _has_run(container):
            return []
        ran = (moment(it.started_at) for it in container.runs)
        began.append(earliest(*ran, *(it.began for it in started)))
    if not main and pod.status.phase != "Running":
        return []
    return [Stage(Step.RUNNING, _LAST, latest(*began))]


def _condition(pod: StartingPod, type_: str) -> ConditionSince | None:
    """Return a condition if it holds."""
    held = (it for it in pod.status.conditions or () if it.type == type_ and it.status == "True")
    return next(held, None)


def _since(condition: ConditionSince | None) -> datetime | None:
    return moment(condition.last_transition_time) if condition else None


_LONGEST = 512
"""In characters: users may choose names of images."""


class UsualSteps:
    """The usual times of steps, in this process."""

    def __init__(self) -> None:
        self._times = UsualTimes[tuple[Step, str]]()

    def learn(self, stages: Sequence[Stage]) -> None:
        """Note how long each stage took that has ended, if its times are known."""
        for stage, following in pairwise(stages):
            took = _seconds(stage, following)
            if took is not None:
                self._times.took(_key(stage), took)

    def seconds(self, stage: Stage) -> float | None:
        """Return how long such a stage usually takes; None if none has been seen to end."""
        return self._times.seconds(_key(stage))


def _seconds(stage: Stage, following: Stage) -> float | None:
    if isinstance(stage.image, Pulled):
        # An image that was there has no times, and says nothing of the next pull.
        return stage.image.with_waiting or stage.image.seconds
    if stage.since is None or following.since is None:
        return None
    return (following.since - stage.since).total_seconds()


def _key(stage: Stage) -> tuple[Step, str]:
    match stage.step:
        case Step.PULLING | Step.INITIALIZING | Step.STARTING:
            decides = stage.image.image if stage.image else stage.subject
        case Step.NODE_STARTING:
            decides = stage.subject
        case _:
            decides = ""
    return stage.step, decides[:_LONGEST]

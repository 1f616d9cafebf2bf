"""Everything that goes wrong with a start, from the pod and its events.

What several texts say of one thing is one trouble. Its reading is the same in whatever order the
facts arrive, and keeps all their texts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

import msgspec
from msgspec.structs import replace

from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.meta import moment
from gpuspawner.kube.startup import ContainerState, StartingPod
from gpuspawner.troubles.container_faults import of_devices, of_end, of_waiting
from gpuspawner.troubles.event_faults import Until, cancels, of_event
from gpuspawner.troubles.evidence import (
    SeenContainer,
    container_of,
    containers,
    earliest,
    latest,
    own,
    server,
)
from gpuspawner.troubles.node_faults import of_disruption, of_failed_status
from gpuspawner.troubles.steps import Place, stages
from gpuspawner.troubles.trouble import IMAGE, VAGUE, About, Exit, Fault, Kind, Trouble

_ENDED = frozenset({"Failed", "Succeeded"})
_OF_PROGRAM = frozenset({Kind.CRASHED, Kind.ENDED, Kind.OUT_OF_MEMORY})
"""Kinds whose text is a program's own, often the end of its log."""


class _Seen(msgspec.Struct, frozen=True):
    """One fact.

    Attributes:
        source: The event, which may be told several times while its count grows; "" for the pod.
    """

    fault: Fault
    text: str
    source: str = ""
    times: int = 1
    is_over: bool = False
    exit: Exit | None = None
    began: datetime | None = None
    last: datetime | None = None


def troubles(pod: StartingPod, events: Iterable[Event]) -> tuple[Trouble, ...]:
    """Return what goes wrong; first what ends the start, last what is over."""
    its = own(pod, events)
    look = _Look(pod, its)
    groups: dict[tuple[Kind, About], list[_Seen]] = {}
    for seen in (*_of_pod(pod), *_of_containers(look), *_of_events(look, its)):
        about = look.completed(seen.fault)
        groups.setdefault((seen.fault.kind, about), []).append(seen)
    made = [_trouble(kind, about, seen) for (kind, about), seen in groups.items()]
    if pod.status.phase in _ENDED and not any(it.is_final for it in made):
        made.append(Trouble(Kind.FAILED, is_final=True))
    return tuple(sorted(made, key=_urgency))


@dataclass
class _Look:
    """What the pod is about, and how far it is."""

    pod: StartingPod
    events: list[Event]
    containers: dict[str, SeenContainer] = field(init=False)

    def __post_init__(self) -> None:
        self.containers = {it.name: it for it in containers(self.pod)}

    # Most pods have no troubles that these matter to.

    @cached_property
    def reached(self) -> dict[Place, datetime | None]:
        return {it.place: it.since for it in stages(self.pod, self.events)}

    @cached_property
    def claims(self) -> dict[str, str]:
        return {
            it.name: it.persistent_volume_claim.claim_name
            for it in self.pod.spec.volumes or ()
            if it.persistent_volume_claim
        }

    def completed(self, fault: Fault) -> About:
        """Add the image of the container, and the claim of the volume."""
        about = fault.about
        container = self.containers.get(about.container)
        image = container.spec.image if container and fault.kind in IMAGE else about.image
        return replace(about, image=image, claim=about.claim or self._claim(about.volume))

    def _claim(self, volume: str) -> str:
        """Return the claim of a volume; "" if nobody knows it.

        The events of the controller that attaches volumes name only their PersistentVolumes, which
        tell the claim if the pod has no other.
        """
        if volume in self.claims:
            return self.claims[volume]
        only = set(self.claims.values())
        is_of_pod = any(it.name == volume for it in self.pod.spec.volumes or ())
        return only.pop() if volume and len(only) == 1 and not is_of_pod else ""

    def is_over(self, until: Until, name: str, at: datetime | None = None) -> bool:
        """Whether the start has come further than something that was wrong with a container."""
        container = self.containers.get(name)
        if until is Until.NEVER:
            return False
        if until is Until.LATER:
            return at is not None and any(since and since > at for since in self.reached.values())
        if until is Until.CONTAINERS or container is None:
            least = (0, 1) if until is Until.IMAGE else (0, 0)
            return any(place >= least for place in self.reached)
        if until is Until.IMAGE:
            return (container.position, 1) in self.reached
        status = container.status
        state = (status.state if status else None) or ContainerState()
        is_done = container.is_init and state.terminated and not state.terminated.exit_code
        is_ready = bool(status and status.ready) or bool(is_done)
        return is_ready or (until is Until.RUNS and state.running is not None)


def _of_pod(pod: StartingPod) -> Iterator[_Seen]:
    status = pod.status
    if status.phase == "Failed" or status.reason == "NodeLost":
        fault = of_failed_status(status.reason, status.message)
        if fault.kind is not Kind.FAILED or status.reason or status.message:
            yield _Seen(fault, status.message or status.reason)
    for condition in status.conditions or ():
        since = moment(condition.last_transition_time)
        text = condition.message or condition.reason
        if condition.type == "DisruptionTarget" and condition.status == "True":
            yield _Seen(of_disruption(condition.reason, text), text, began=since, last=since)
        if condition.type == _OF_KUEUE and condition.status == "True":
            # Whatever they say, the pod is deleted.
            why = condition.reason.removeprefix(_EVICTED)
            fault = Fault(of_eviction(why, text), is_final=True)
            yield _Seen(fault, text, began=since, last=since)
        if condition.type == "PodScheduled" and condition.status == "False":
            yield _Seen(Fault(Kind.UNSCHEDULABLE), text, began=since, last=since)
    if pod.metadata.deletion_timestamp:
        yield _Seen(Fault(Kind.DELETED, is_final=True), "")


def _of_containers(look: _Look) -> Iterator[_Seen]:
    for container in look.containers.values():
        status = container.status
        if status is None:
            continue
        now, before = status.state or ContainerState(), status.last_state or ContainerState()
        if now.waiting and (fault := of_waiting(now.waiting, container.spec.image)):
            text = now.waiting.message or now.waiting.reason
            yield _Seen(_in(container.name, fault), text, times=max(1, status.restart_count))
        for fault, text in of_devices(status):
            yield _Seen(_in(container.name, fault), text)
        ends = ((now, status.restart_count), (before, status.restart_count - 1))
        for state, restarts in ends:
            yield from _of_end(look, container, state, max(0, restarts))


def _of_end(
    look: _Look, container: SeenContainer, state: ContainerState, restarts: int
) -> Iterator[_Seen]:
    ended = state.terminated
    fault = of_end(ended, container, look.pod.spec.restart_policy) if ended else None
    if ended is None or fault is None:
        return
    finished, message = moment(ended.finished_at), ended.message
    text = message or ended.reason
    if fault.kind in _OF_PROGRAM and container.name != server(look.pod):
        # The server's owner reads the text, and the administrator's program may tell secrets.
        message, text = "", f"{container.name}: {ended.reason}, exit code {ended.exit_code}"
    yield _Seen(
        _in(container.name, fault),
        text,
        times=restarts + 1,
        is_over=look.is_over(Until.READY, container.name),
        exit=Exit(ended.exit_code, ended.signal, ended.reason, restarts, message),
        began=finished,
        last=finished,
    )


def _of_events(look: _Look, events: list[Event]) -> Iterator[_Seen]:
    cancelled = latest(*(it.last for it in events if cancels(it)))
    for event in events:
        faults, until = of_event(event)
        name = container_of(event)
        for fault in faults:
            is_cancelled = fault.kind is Kind.TAINTED and _is_after(cancelled, event.last)
            yield _Seen(
                _in(name, fault),
                event.message or event.reason,
                source=event.metadata.uid
                or event.metadata.name
                or f"{event.reason}:{event.message}",
                times=event.times,
                is_over=is_cancelled or look.is_over(until, name, event.last),
                began=event.began,
                last=event.last,
            )


def _is_after(at: datetime | None, other: datetime | None) -> bool:
    """Whether one time surely isn't before the other; the API counts whole seconds."""
    return at is not None and other is not None and at >= other


def _in(container: str, fault: Fault) -> Fault:
    """Add the container that a status or an event is about, unless the text names one."""
    named = fault.about.container or container
    return replace(fault, about=replace(fault.about, container=named))


def _trouble(kind: Kind, about: About, seen: list[_Seen]) -> Trouble:
    # A text without a time is of the pod itself, so it is the present one.
    last_first = sorted(seen, key=lambda it: (it.last is None, _stamp(it.last), it.text))
    exits = [it.exit for it in seen if it.exit]
    return Trouble(
        kind,
        about,
        is_final=any(it.fault.is_final and not it.is_over for it in seen),
        is_over=all(it.is_over for it in seen),
        attempts=_attempts(seen),
        texts=tuple(dict.fromkeys(it.text for it in last_first if it.text)),
        holders=tuple(sorted({holder for it in seen for holder in it.fault.holders})),
        exit=max(exits, key=lambda it: (it.restarts, it), default=None),
        began=earliest(*(it.began for it in seen)),
        last=latest(*(it.last for it in seen)),
    )


def _attempts(seen: list[_Seen]) -> int:
    """Add up the events, each with its highest count; the pod's own count may be higher."""
    counts: dict[str, int] = {}
    for it in seen:
        counts[it.source] = max(counts.get(it.source, 0), it.times)
    of_pod = counts.pop("", 0)
    return max(of_pod, sum(counts.values()))


_OF_PROBES = {Kind.NOT_READY, Kind.NOT_ALIVE}
_GENERAL = VAGUE | _OF_PROBES | {Kind.DELETED, Kind.FAILED, Kind.UNKNOWN}
"""Kinds that say less than another; a probe also fails because of a crash, and tells it later."""


def _urgency(it: Trouble) -> tuple[object, ...]:
    return (
        it.is_over,
        not it.is_final,
        it.kind is Kind.UNKNOWN,
        it.kind in _GENERAL,
        -_stamp(it.last),
        it.kind,
        it.about,
    )


def _stamp(at: datetime | None) -> float:
    return at.timestamp() if at else 0.0


# Reads why Kueue has ended a pod, from the condition that it writes before it deletes the pod; its
# workload says the same.
#
# ``Stop`` in ``pkg/controller/jobs/pod/pod_controller.go``, ``stopJob`` in
# ``pkg/controller/jobframework/reconciler.go`` and ``pkg/scheduler/preemption`` of Kueue 0.15.0.

_OF_KUEUE = "TerminationTarget"
_EVICTED = "WorkloadEvictedDueTo"
_STOPPED = ("ClusterQueueStopped", "LocalQueueStopped")
_RECLAIMED = "within the cohort"


def of_eviction(reason: str, text: str) -> Kind:
    """Return what Kueue has done to a workload, from the reason and the message of a condition."""
    if reason == "Preempted":
        return Kind.QUEUE_RECLAIMED if _RECLAIMED in text else Kind.QUEUE_PREEMPTED
    return Kind.QUEUE_STOPPED if reason in _STOPPED else Kind.QUEUE_EVICTED

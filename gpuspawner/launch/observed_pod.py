"""What the hub sees of the pod of one start: its own status, its events, and Kueue's word."""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from gpuspawner.cluster.health import Live
from gpuspawner.cluster.kueue_objects import KueueObjects
from gpuspawner.cluster.pod_events import Heard
from gpuspawner.cluster.view import ClusterView
from gpuspawner.compat.kubespawner import Stock
from gpuspawner.kube.autoscaling import Event
from gpuspawner.kube.pods import Pod
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kube.startup import StartingPod, read_pod
from gpuspawner.preflight.kueue import PlaceInQueue
from gpuspawner.scheduling.requests import Amounts, pod_requests
from gpuspawner.scheduling.rules import Rules
from gpuspawner.troubles.ending import Ending
from gpuspawner.troubles.evidence import server
from gpuspawner.troubles.pod_troubles import troubles
from gpuspawner.troubles.steps import Stage, Step, merged, stages
from gpuspawner.troubles.trouble import Kind, Trouble

AGAIN_SECONDS = 1.0
"""How often a start is looked at if nothing changes: limits pass, and the bar moves."""
_GONE_SECONDS = 5.0
"""How long a pod that was there may be missing: KubeSpawner may read all pods anew."""
UNSEEN_SECONDS = 2.0
"""How long a pod must be out of sight. The view may lag, and still have shown an older one."""
NEVER_SEEN_SECONDS = 30.0
"""As that, of a pod that was never in view: it may have come and gone in one answer of a watch.

They end with the last that the watch of pods has said: it may have broken silently, and show the
pod only when it is back.
"""


class Seen(msgspec.Struct, frozen=True):
    """How far a start is, and what goes wrong; by default, nobody has shown its pod yet.

    Attributes:
        stages: All that it has reached, in order; at least one.
        texts: Of the events since the last look.
        node: The pod's; "" if it has none yet.
        uid: The pod's; "" if none has been seen.
        server: The name of the server's container.
        queue: The queue in which it waits for quota; None if it doesn't, or if nobody knows.
    """

    stages: tuple[Stage, ...] = (Stage(Step.SCHEDULING, (-1, 0)),)
    troubles: tuple[Trouble, ...] = ()
    texts: tuple[str, ...] = ()
    node: str = ""
    uid: str = ""
    server: str = ""
    queue: PlaceInQueue | None = None

    @property
    def is_queued(self) -> bool:
        """Whether Kueue holds the pod back."""
        return self.stages[-1].step is Step.QUEUED


class InView:
    """Whether the view still shows a pod that was sent."""

    def __init__(self, view: ClusterView, key: str) -> None:
        self._view = view
        self._key = key
        self._was_seen = self._is_seen()
        self._missing_since: float | None = None

    def is_lost(self) -> bool:
        """Whether the pod is gone: out of sight for a while, and not only because of the view.

        The time runs from the first look without the pod: looks may be far apart.
        """
        is_seen, now = self._is_seen(), time.monotonic()
        self._was_seen = self._was_seen or is_seen
        # Without an error, a view may still be reading its first list.
        if is_seen or not (self._view.in_touch() and isinstance(self._view.health(), Live)):
            self._missing_since = None
            return False
        if self._missing_since is None:
            self._missing_since = now
        missing = now - self._missing_since
        if self._was_seen:  # this very watch has told its end
            return missing >= UNSEEN_SECONDS
        return missing - self._view.silent_for("Pod") >= NEVER_SEEN_SECONDS

    def _is_seen(self) -> bool:
        state = self._view.state
        return (
            self._key in state.pods
            or self._key in state.unbound_pods
            or any(
                it.kind == "Pod" and self._key == f"{it.namespace}/{it.name}"
                for it in state.undecodable
            )
        )


class SeenPod:
    """Looks at the pod that KubeSpawner's reflector shows; a newer pod of its name starts anew.

    Args:
        is_lost: Returns whether the live view is sure that the pod is gone. The reflector may never
            have shown it.
        farewell: Returns how the pod has ended, by its last version, if that is known.
    """

    def __init__(
        self, stock: Stock, is_lost: Callable[[], bool], farewell: Callable[[], Ending | None]
    ) -> None:
        self._stock = stock
        self._is_lost = is_lost
        self._farewell = farewell
        self._raw: Any = None
        self._looked = -AGAIN_SECONDS
        self._forget(None)

    def _forget(self, pod: StartingPod | None) -> None:
        self._pod = pod
        self._missing_since = math.inf
        self._events: dict[str, Event] = {}
        self._stages: tuple[Stage, ...] = ()

    @property
    def is_blind(self) -> bool:
        """Whether no pod has been seen: none is shown, or it came and went between two looks."""
        return self._pod is None

    def has_node(self) -> bool:
        """Whether the pod has a node by now, also if no look has seen that yet."""
        now = read_pod(self._stock.known_pod())
        if now is None or self._pod is None:
            return False
        return now.metadata.uid == self._pod.metadata.uid and now.spec.node_name != ""

    def look(self, heard: Heard) -> Seen | None:
        """Return what there is to see; None if it is too early, or nothing has happened.

        A cluster changes hundreds of times a second, so most changes are about other pods.
        """
        is_changed, now = self._read(), time.monotonic()
        if self._pod is None:
            return Seen(troubles=self._gone()) if self._is_lost() else None
        news = heard.take(self._pod.metadata.uid)
        if not (is_changed or news) and now - self._looked < AGAIN_SECONDS:
            return None
        self._looked = now
        self._events |= {event.metadata.name: event for event in news}
        events = tuple(self._events.values())
        # Events expire, but a start never comes back to an earlier step.
        self._stages = merged((*self._stages, *stages(self._pod, events)))
        is_gone = now - self._missing_since > _GONE_SECONDS or self._is_lost()
        found = self._gone() if is_gone else troubles(self._pod, events)
        texts = tuple(event.message for event in news)
        node, uid = self._pod.spec.node_name, self._pod.metadata.uid
        return Seen(self._stages, found, texts, node, uid, server(self._pod))

    def _gone(self) -> tuple[Trouble, ...]:
        ending = self._farewell()
        return (Trouble(ending.kind if ending else Kind.DELETED, is_final=True),)

    def _read(self) -> bool:
        """Read the pod; return whether it has changed."""
        raw = self._stock.known_pod()
        if raw is not None or not self._stock.knows_pods():
            self._missing_since = math.inf
        else:  # from the first look without it: looks may be far apart
            self._missing_since = min(self._missing_since, time.monotonic())
        if raw is None or raw is self._raw:
            return False
        self._raw = raw
        pod = read_pod(raw)
        if pod is None or not pod.metadata.uid:
            return False
        if self._pod is not None and pod.metadata.uid == self._pod.metadata.uid:
            self._pod = pod
        elif not pod.metadata.deletion_timestamp:  # an older pod of the name may still be ending
            self._forget(pod)
        return True


def with_workload(seen: Seen, objects: KueueObjects, pod: Pod | None, rules: Rules) -> Seen:
    """Add to what is seen of a start what Kueue says of it, while it waits for quota.

    Kueue makes a workload of the pod, which says what the pod waits for.
    """
    if not seen.is_queued or not seen.uid:
        return seen
    # Only once Kueue holds a pod back.
    from gpuspawner.kueue.workloads import is_checked, place_in_queue, vain

    workload = objects.workload_of(seen.uid)
    if workload is None:
        silence = (Trouble(Kind.QUEUE_SILENT),) if objects.sees_all_workloads() else ()
        return replace(seen, troubles=(*seen.troubles, *silence))
    if trouble := vain(objects, workload):
        return replace(seen, troubles=(trouble, *seen.troubles))
    if is_checked(workload):
        return seen
    requests: Amounts = {}
    with suppress(QuantityError):
        requests = pod_requests(pod, rules) if pod else {}
    return replace(seen, queue=place_in_queue(objects, workload, requests))

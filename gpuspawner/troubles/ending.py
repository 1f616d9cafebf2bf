"""What has happened to a server that was up, read from its pod: mishaps it outlived, and its end.

A lost node, a preemption or an eviction deletes a pod within seconds, and the hub looks at a server
only every 30 seconds. By then, nothing is left of the pod that could tell why. So `Farewells` keeps
the last that was known of pods that are gone.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from gpuspawner.kube.caches import Recent
from gpuspawner.kube.meta import Key, moment
from gpuspawner.kube.quantity import INT64_MAX, QuantityError, parse_quantity
from gpuspawner.kube.startup import StartingPod, read_pod
from gpuspawner.offers.vendors import is_gpu
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.troubles.evidence import containers, server
from gpuspawner.troubles.pod_troubles import troubles
from gpuspawner.troubles.trouble import Kind, Trouble

_FIRST = (
    # Kubernetes says why it ends the pod; its containers' ends only follow from that.
    Kind.QUEUE_PREEMPTED,
    Kind.QUEUE_RECLAIMED,
    Kind.QUEUE_STOPPED,
    Kind.QUEUE_EVICTED,
    Kind.PREEMPTED,
    Kind.NODE_PRESSURE,
    Kind.OVER_LIMIT,
    Kind.DEADLINE,
    Kind.NODE_SHUTDOWN,
    Kind.TAINTED,
    Kind.EVICTED,
    Kind.NODE_LOST,
    # What may have broken the server.
    Kind.DEVICE_BROKEN,
    Kind.OUT_OF_MEMORY,
)
_BY_ITSELF = (Kind.CRASHED, Kind.ENDED)
_ORDER = (*_FIRST, *_BY_ITSELF, Kind.DELETED, Kind.FAILED)
_OF_CONTAINERS = (Kind.OUT_OF_MEMORY, *_BY_ITSELF)
_OVERDUE = timedelta(seconds=10)
"""How long after its grace period a pod's end is only late."""


class Ending(msgspec.Struct, frozen=True):
    """How a server ended; the hub's database keeps it until the next start.

    Attributes:
        seconds: Its longest life; 0 if it has none.
        memory: The limit of the container that took too much, in bytes; 0 if it isn't known.
        node: Where it ran.
        last_words: What a container that crashed has left.
    """

    kind: Kind
    moment: datetime
    seconds: int = 0
    memory: int = 0
    node: str = ""
    last_words: str = ""


def read(plain: object) -> Ending | None:
    """Read an ending as `written` made it; None if nobody can, or if there is none."""
    try:
        ending = msgspec.convert(plain, Ending) if plain else None
    except (msgspec.ValidationError, OverflowError):
        return None
    return ending if ending and ending.moment.tzinfo else None


def written(ending: Ending) -> dict[str, object]:
    """Return an ending as JSON has it."""
    plain: dict[str, object] = msgspec.to_builtins(ending)
    return plain


def ending_of(pod: StartingPod, now: datetime) -> Ending | None:
    """Return why the pod has ended, given that it has; None if it doesn't tell."""
    cause = _cause(pod)
    if cause is None:
        return None
    return Ending(
        cause.kind,
        cause.last or cause.began or _asked(pod) or now,
        pod.spec.active_deadline_seconds or 0,
        memory_limit(pod, cause.about.container),
        pod.spec.node_name,
        cause.exit.last_words if cause.exit else "",
    )


def is_overdue(pod: StartingPod, now: datetime) -> bool:
    """Whether a deleted pod should be gone by now; if it isn't, its node doesn't answer."""
    ends = moment(pod.metadata.deletion_timestamp)
    return ends is not None and now - ends > _OVERDUE


def _cause(pod: StartingPod) -> Trouble | None:
    present = [it for it in troubles(pod, ()) if not (it.is_over or _is_of_other(it, pod))]
    found, asked = {it.kind: it for it in reversed(present)}, _asked(pod)

    def is_cause(it: Trouble) -> bool:
        """Whether it is more than the end of a server whose deletion was requested before."""
        is_before = asked is None or (it.last is not None and it.last < asked)
        return is_before or it.kind not in _BY_ITSELF

    return next((it for kind in _ORDER if (it := found.get(kind)) and is_cause(it)), None)


def _is_of_other(it: Trouble, pod: StartingPod) -> bool:
    """Whether another container has ended than the server's: the server runs on without it."""
    return it.kind in _OF_CONTAINERS and it.about.container != server(pod)


def _asked(pod: StartingPod) -> datetime | None:
    """Return when somebody asked for the pod's deletion."""
    ends = moment(pod.metadata.deletion_timestamp)
    if ends is None:
        return None
    try:
        return ends - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)
    except OverflowError:  # a pod that may take forever
        return None


def memory_limit(pod: StartingPod, container: str) -> int:
    """Return the most memory that a container may have, in bytes; 0 if nothing says so."""
    for it in containers(pod):
        limits = it.spec.resources.limits if it.spec.resources else None
        if it.name == container and limits and "memory" in limits:
            try:
                return min(int(parse_quantity(str(limits["memory"]))), INT64_MAX)
            except QuantityError:
                return 0
    return 0


def utc_now() -> datetime:
    """Return this moment."""
    return datetime.now(UTC)


_MOST = 1_000
"""Many more than can end between two looks at them."""


class Farewells:
    """How the last pods ended that are gone; the oldest are forgotten first."""

    def __init__(self, most: int = _MOST) -> None:
        self._endings = Recent[Key, Ending](most)

    def note(self, pod: object) -> None:
        """Note the last version of a pod that is gone."""
        last = read_pod(pod)
        if last is None:
            return
        key = last.metadata.key
        self.forget(key)
        if ending := ending_of(last, utc_now()):
            self._endings[key] = ending

    def of(self, key: Key) -> Ending | None:
        """Return how the last pod of this name ended; None if nothing told."""
        return self._endings.get(key)

    def forget(self, key: Key) -> None:
        """Forget the last pod of this name: another one has it now."""
        self._endings.pop(key, None)


UNREACHABLE = frozenset({"node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"})
"""Taints of a node that doesn't answer any more."""


class Mishap(msgspec.Struct, frozen=True):
    """Something that has happened to a server.

    Attributes:
        moment: When the kubelet had to start the server again; None if it didn't.
        memory: The limit of the container that took too much, in bytes; 0 if it isn't known.
    """

    kind: Kind
    moment: datetime | None = None
    memory: int = 0


def mishaps(pod: StartingPod, node: NodeInfo | None) -> list[Mishap]:
    """Return what has happened to a server; *node* is its node as the view has it."""
    found = [*_of_node(pod, node), *_of_pod(pod)]
    return list({it.kind: it for it in reversed(found)}.values())


def is_lost(node: NodeInfo | None) -> bool:
    """Whether a node doesn't answer any more, or is gone."""
    return node is None or any(it.key in UNREACHABLE for it in node.taints)


def _of_pod(pod: StartingPod) -> Iterator[Mishap]:
    # Other containers may crash too, an init container before the server was up, for example.
    name = server(pod)
    for it in troubles(pod, ()):
        if it.kind is Kind.DEVICE_BROKEN:
            yield Mishap(it.kind)
        is_restart = it.kind in (Kind.OUT_OF_MEMORY, Kind.CRASHED)
        if is_restart and it.about.container == name and it.last is not None:
            yield Mishap(it.kind, it.last, memory_limit(pod, name))


def _of_node(pod: StartingPod, node: NodeInfo | None) -> Iterator[Mishap]:
    if node is None:  # not read yet, perhaps
        return
    if is_lost(node):
        yield Mishap(Kind.NODE_LOST)
    if any(is_gpu(it) and _takes_back(node, it) for it in _limited(pod)):
        yield Mishap(Kind.DEVICE_BROKEN)


def _takes_back(node: NodeInfo, resource: str) -> bool:
    """Whether a device plugin takes broken devices back, even those that pods have.

    If all of several are gone, the plugin itself is away, for an upgrade for example
    (`PluginDisconnected` in ``pkg/kubelet/cm/devicemanager/manager.go``, v1.36). And a plugin that
    counts fewer shares of a GPU lowers the capacity, too.
    """
    healthy, every = node.allocatable.get(resource, 0), node.capacity.get(resource, 0)
    are_all_gone = healthy == 0 and every > 1
    return healthy < every and not are_all_gone and node.free.get(resource, 0) < 0


def _limited(pod: StartingPod) -> Iterator[str]:
    for container in pod.spec.containers or ():
        if container.resources:
            yield from container.resources.limits or ()

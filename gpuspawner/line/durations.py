"""How long the hub's servers have run, when they end, and which are idle: for the line.

All of it comes from the pods of the hub's namespace. Other pods take room too, but nobody knows
when they end. Ends are seen from the hub's start on, and only the last ones are kept. A server that
began before counts only from then on.
"""

import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from gpuspawner.kube.meta import Key, moment
from gpuspawner.kube.servers import ServerPod
from gpuspawner.line.estimate import Occupant
from gpuspawner.line.room import KnownEnd
from gpuspawner.line.survival import Survival
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.requests import is_device

_KEPT = 500
"""How many ends of servers count for each resource: the last ones."""
_SURE_SECONDS = 60.0
"""For how long an estimate of survival is used again."""


class _Run(msgspec.Struct, frozen=True):
    """A server from its beginning until its end, or until now."""

    began: datetime
    until: datetime

    @property
    def seconds(self) -> float:
        """How long it lasted, or has lasted."""
        return self.age(self.until)

    def age(self, at: datetime) -> float:
        """Return how old it was at a moment, in seconds."""
        return (at - self.began).total_seconds()

    def is_seen(self, since: datetime) -> bool:
        """Whether it ran after a moment; one that didn't is seen only if a clock was set back."""
        return self.began >= since or self.until > since


class Durations:
    """What is known of servers in time.

    Args:
        pods: Returns the pods of servers, by namespace and name.
        unused: Returns the keys of those that nobody has used for long.
    """

    def __init__(
        self,
        pods: Callable[[], Mapping[Key, ServerPod]],
        unused: Callable[[], Collection[Key]] = frozenset,
    ) -> None:
        self._pods = pods
        self._unused = unused
        self._ended: dict[str, deque[_Run]] = defaultdict(lambda: deque(maxlen=_KEPT))
        began = datetime.now(UTC)
        self._since: dict[str, datetime] = defaultdict(lambda: began)
        self._survivals: dict[str, tuple[float, Survival]] = {}

    def note_end(self, pod: ServerPod) -> None:
        """Note that a pod is gone."""
        run = _run(pod, datetime.now(UTC))
        if run is not None:
            for resource in _devices(pod):
                ended = self._ended[resource]
                if len(ended) == _KEPT:
                    self._since[resource] = ended[0].until
                ended.append(run)

    def ends(self, node: NodeInfo) -> list[KnownEnd]:
        """Return the known ends of the pods on a node, the first one first."""
        now, pods = datetime.now(UTC), self._pods()
        found = []
        for info in node.pods.values():
            ends_at = pod.ends_at if (pod := pods.get((info.namespace, info.name))) else None
            if ends_at is not None:
                left = max(0.0, (ends_at - now).total_seconds()) + info.grace
                found.append(KnownEnd(left, info.requested))
        return sorted(found, key=lambda it: it.seconds)

    def occupants(self, nodes: Iterable[NodeInfo], resource: str) -> list[Occupant]:
        """Return the servers on some nodes that have some of a resource."""
        now, pods = datetime.now(UTC), self._pods()
        found = []
        for node in nodes:
            for info in node.pods.values():
                pod = pods.get((info.namespace, info.name))
                amount = info.requested.get(resource, 0)
                age = _age(pod, now) if pod and amount else None
                if pod and age is not None:
                    ends_at = pod.ends_at
                    left = (ends_at - now).total_seconds() + info.grace if ends_at else None
                    found.append(Occupant(amount, age, left))
        return found

    def idle(self, nodes: Iterable[NodeInfo], resource: str) -> int:
        """Return how many servers on some nodes have some of a resource, and are idle."""
        unused = self._unused()
        pods = (it for node in nodes for it in node.pods.values()) if unused else ()
        return sum(
            1 for it in pods if (it.namespace, it.name) in unused and it.requested.get(resource)
        )

    def survival(self, resource: str) -> Survival:
        """Return how long servers with a resource last, wherever they run."""
        made, survival = self._survivals.get(resource, (float("-inf"), Survival()))
        now = time.monotonic()
        if now - made > _SURE_SECONDS:
            survival = self._survival(resource)
            self._survivals[resource] = now, survival
        return survival

    def _survival(self, resource: str) -> Survival:
        at, since = datetime.now(UTC), self._since[resource]
        runs = (_run(it, at) for it in self._pods().values() if resource in _devices(it))
        running = [it for it in runs if it is not None and it.is_seen(since)]
        ended = [it for it in self._ended[resource] if it.is_seen(since)]
        late = (it.age(since) for it in ended + running if it.began < since)
        return Survival.of((it.seconds for it in ended), (it.seconds for it in running), late)


def _devices(pod: ServerPod) -> set[str]:
    given = (it.resources for it in pod.spec.containers or () if it.resources)
    named = (name for it in given for name in {**(it.requests or {}), **(it.limits or {})})
    return set(filter(is_device, named))


def _age(pod: ServerPod, now: datetime) -> float | None:
    run = _run(pod, now)
    return None if run is None else run.seconds


def _run(pod: ServerPod, until: datetime) -> _Run | None:
    began = moment(pod.status.start_time)
    return _Run(min(began, until), until) if began else None

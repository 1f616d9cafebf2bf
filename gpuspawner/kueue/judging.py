"""Whether Kueue would admit a pod now, later, or never, by its quotas.

``pkg/scheduler/flavorassigner/flavorassigner.go`` of Kueue 0.15.0 decides so. What isn't read here
can only make a start wait: preemption may make room earlier than told, and admission checks later.
Kueue's own configuration may leave resources out or change them, so a resource without a quota is
no reason for a no.
"""

from collections.abc import Mapping
from enum import StrEnum
from itertools import islice, product
from math import prod

import msgspec

from gpuspawner.kube.kueue import ClusterQueue, ResourceFlavor, ResourceGroup
from gpuspawner.kube.pods import Pod
from gpuspawner.kueue.flavors import matching
from gpuspawner.kueue.objects import KueueObjects
from gpuspawner.kueue.places import PlaceInQueue, inactive, is_stopped, line
from gpuspawner.kueue.quota import QuotaError, QuotaNode
from gpuspawner.scheduling.labels import SelectorError
from gpuspawner.scheduling.requests import PODS, is_device

Flavors = tuple[ResourceFlavor, ...]
"""One for each group of resources."""
_MOST_CHOICES = 16
"""More combinations of flavors than anybody configures."""
_STRICT = "StrictFIFO"
_STOP_TO_PREEMPT = ("MayStopSearch", "Preempt")


class WhyClosed(StrEnum):
    """Why a queue takes nobody."""

    NO_QUEUE = "no-queue"
    """The namespace has no such LocalQueue."""
    NO_POOL = "no-pool"
    """The LocalQueue's ClusterQueue doesn't exist."""
    STOPPED = "stopped"
    """One of both is stopped."""
    INACTIVE = "inactive"
    """Kueue says that the ClusterQueue admits nobody."""


class Free(msgspec.Struct, frozen=True):
    """There is quota, and nobody is ahead.

    Attributes:
        choices: The flavors that have it, in the order in which Kueue tries them.
        doubt: Why the pod may start even if no node of these flavors has room; "" if it can't.
    """

    choices: tuple[Flavors, ...]
    doubt: str = ""


class Full(msgspec.Struct, frozen=True):
    """The pod would wait for quota.

    Attributes:
        choices: The flavors that it may get.
        doubt: As that of `Free`.
    """

    choices: tuple[Flavors, ...]
    line: PlaceInQueue
    doubt: str = ""


class Never(msgspec.Struct, frozen=True):
    """The pod asks for more than its queue could ever give.

    Attributes:
        asked: In millicores of CPU, and whole units of everything else.
        most: What the queue could give at most; 0 if it has nothing of this kind of nodes.
    """

    queue: str
    resource: str
    asked: int
    most: int


class Closed(msgspec.Struct, frozen=True):
    """The queue takes nobody.

    Attributes:
        details: What Kueue says of it; "" for nothing.
    """

    queue: str
    why: WhyClosed
    details: str = ""


class Unsure(msgspec.Struct, frozen=True):
    """Nobody can tell, for a reason for people who know Kubernetes."""

    why: str


QuotaAnswer = Free | Full | Never | Closed | Unsure


def judge(objects: KueueObjects, queue: str, pod: Pod, requests: Mapping[str, int]) -> QuotaAnswer:
    """Return what Kueue would do with a pod.

    Args:
        objects: Kueue's.
        queue: The LocalQueue in the pod's namespace.
        pod: The pod before Kueue changes it.
        requests: What it requests: millicores of CPU, and whole units of everything else.
    """
    if not objects.knows_quotas:
        return Unsure("Kueue decides, and the hub can't read its queues")
    pool = quota_of(objects, queue, pod.metadata.namespace)
    if not isinstance(pool, ClusterQueue):
        return pool
    try:
        node = objects.pool(pool.metadata.name)
        return _judged(objects, _Question(queue, pool, node, pod, requests))
    except (QuotaError, SelectorError) as error:
        return Unsure(f"Kueue decides by objects that can't be read: {error}")


def quota_of(objects: KueueObjects, queue: str, namespace: str) -> ClusterQueue | Closed:
    """Return the ClusterQueue of a LocalQueue, if it admits anybody."""
    local = objects.local_queue(namespace, queue)
    if local is None:
        return Closed(queue, WhyClosed.NO_QUEUE)
    pool = objects.cluster_queue(local.spec.cluster_queue)
    if pool is None:
        return Closed(queue, WhyClosed.NO_POOL)
    if is_stopped(local, pool):
        return Closed(queue, WhyClosed.STOPPED)
    if details := inactive(pool):
        return Closed(queue, WhyClosed.INACTIVE, details)
    return pool


class _Question(msgspec.Struct, frozen=True):
    queue: str
    pool: ClusterQueue
    node: QuotaNode
    pod: Pod
    requests: Mapping[str, int]

    def asked(self, group: ResourceGroup) -> dict[str, int]:
        """Return what is asked of a group; Kueue counts the pod itself, too."""
        every = {**self.requests, PODS: 1}
        return {it: every[it] for it in group.covered_resources or () if every.get(it)}

    def fits(self, flavor: ResourceFlavor, asked: Mapping[str, int]) -> bool:
        """Whether a flavor has enough left."""
        name = flavor.metadata.name
        return all(amount <= self.node.available((name, it)) for it, amount in asked.items())

    def could_fit(self, flavor: ResourceFlavor, asked: Mapping[str, int]) -> bool:
        """Whether a flavor could ever have enough."""
        name = flavor.metadata.name
        return all(amount <= self.node.most((name, it)) for it, amount in asked.items())

    def never(self, flavors: list[ResourceFlavor], asked: Mapping[str, int]) -> Never:
        """Return the resource of which the flavors could never give enough, devices first."""
        by_rank = sorted(asked, key=lambda it: (not is_device(it), it))
        for it in by_rank:
            most = max((self.node.most((one.metadata.name, it)) for one in flavors), default=0)
            if asked[it] > most:
                return Never(self.queue, it, asked[it], most)
        first = by_rank[0]  # each flavor lacks another resource
        return Never(self.queue, first, asked[first], 0)


def _judged(objects: KueueObjects, it: _Question) -> QuotaAnswer:
    possible: list[list[ResourceFlavor]] = []
    free: list[list[ResourceFlavor]] = []
    for group in it.pool.spec.resource_groups or ():
        asked = it.asked(group)
        if not asked:
            continue
        allowed = list(matching(it.pod.spec, group, objects))
        possible.append([one for one in allowed if it.could_fit(one, asked)])
        free.append([one for one in allowed if it.fits(one, asked)])
        if not possible[-1]:
            return it.never(allowed, asked)
    if any(one.spec.topology_name for group in possible for one in group):
        return Unsure("Kueue places the pod by its topology")
    found = line(objects, it.queue, it.pool, it.pod.spec, it.requests)
    is_blocked = it.pool.spec.queueing_strategy == _STRICT and found.ahead
    if all(free) and not is_blocked:
        return Free(_choices(free), _doubt(it.pool, free) or _preemption(it.pool, possible, free))
    return Full(_choices(possible), found, _doubt(it.pool, possible))


def _choices(groups: list[list[ResourceFlavor]]) -> tuple[Flavors, ...]:
    return tuple(islice(product(*groups), _MOST_CHOICES))


def _doubt(pool: ClusterQueue, groups: list[list[ResourceFlavor]]) -> str:
    """Return why the nodes of the first choices of flavors don't decide; "" if they do.

    An admission check, such as that of ProvisioningRequests, may bring nodes before the pod is
    admitted, and add to its selectors and tolerations.
    """
    if pool.spec.admission_checks or pool.spec.admission_checks_strategy:
        return "Kueue's admission checks may add nodes, or change the pod"
    is_cut = prod(map(len, groups)) > _MOST_CHOICES
    return "Kueue may choose a flavor that wasn't looked at" if is_cut else ""


def _preemption(
    pool: ClusterQueue, possible: list[list[ResourceFlavor]], free: list[list[ResourceFlavor]]
) -> str:
    """Return whether Kueue may preempt in a flavor that is in use, before it tries a free one."""
    fungibility = pool.spec.flavor_fungibility
    may_stop = fungibility is not None and fungibility.when_can_preempt in _STOP_TO_PREEMPT
    return "Kueue may preempt in another flavor" if may_stop and free != possible else ""

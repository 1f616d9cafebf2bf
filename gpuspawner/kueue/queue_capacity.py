"""How much a ClusterQueue could give at most, if nobody used any of it.

This is ``potentialAvailable`` in ``pkg/cache/scheduler/resource_node.go``, which is the same in
Kueue 0.15.0 and 0.19.2: quotas add up from the ClusterQueues to the root of their cohorts. What may
not be lent stays with its owner, and nobody borrows more than the own limit.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from gpuspawner.kube.kueue import ClusterQueue, Cohort, QueueMeta, ResourceQuota
from gpuspawner.kube.meta import Quantity
from gpuspawner.kube.quantity import millis_of, parse_nanos, whole_of
from gpuspawner.scheduling.requests import CPU

FlavorResource = tuple[str, str]
"""A flavor and a resource."""
_Member = ClusterQueue | Cohort
_Name = tuple[type[_Member], str]
"""A ClusterQueue and a cohort may have the same name."""


class CohortError(ValueError):
    """A cohort is above itself; Kueue admits nothing then."""


class QueueCapacity:
    """What ClusterQueues could give, alone and in cohorts, as long as none of them changes.

    Amounts are millicores of CPU, and whole units of everything else. A cohort may have hundreds of
    members, so each one's quotas are read and added up only once.
    """

    def __init__(self, queues: Iterable[ClusterQueue], cohorts: Iterable[Cohort]) -> None:
        self._cohorts = {it.metadata.name: it for it in cohorts}
        self._below: dict[str, list[_Member]] = defaultdict(list)
        members: list[_Member] = [*queues, *self._cohorts.values()]
        for it in members:
            self._below[_above(it)].append(it)
        self._quotas: dict[_Name, dict[FlavorResource, ResourceQuota]] = {}
        self._sums: dict[tuple[_Name, FlavorResource], int] = {}

    def most(self, queue: ClusterQueue, key: FlavorResource) -> int:
        """Return how much a ClusterQueue could have if nothing was reserved.

        Raises:
            CohortError: A cohort is above itself.
            QuantityError: An amount can't be read.
        """
        root, *others = self._path(queue)
        most = self._own(root, key)
        for it in others:
            own, quota = self._own(it, key), self._quota(it, key)
            most += own - self._lent(it, key)
            if quota is not None and quota.borrowing_limit is not None:
                most = min(most, own + amount(key[1], quota.borrowing_limit))
        return most

    def _path(self, queue: ClusterQueue) -> list[_Member]:
        """Return the root of its cohorts, those below that, and the ClusterQueue itself."""
        path: list[_Member] = [queue]
        while name := _above(path[-1]):
            # A cohort may have no object of its own.
            cohort = self._cohorts.get(name) or Cohort(QueueMeta(name))
            if cohort in path:
                raise CohortError(f"the cohort {name} is above itself")
            path.append(cohort)
        return path[::-1]

    def _own(self, member: _Member, key: FlavorResource) -> int:
        """Return its own quota, and what those below can lend it."""
        at = _name(member), key
        if (known := self._sums.get(at)) is not None:
            return known
        quota = self._quota(member, key)
        nominal = amount(key[1], quota.nominal_quota) if quota else 0
        below = self._below[member.metadata.name] if isinstance(member, Cohort) else ()
        self._sums[at] = nominal + sum(self._lent(it, key) for it in below)
        return self._sums[at]

    def _lent(self, member: _Member, key: FlavorResource) -> int:
        """Return what it can lend at most."""
        own, quota = self._own(member, key), self._quota(member, key)
        if quota is None or quota.lending_limit is None:
            return own
        return min(own, amount(key[1], quota.lending_limit))

    def _quota(self, member: _Member, key: FlavorResource) -> ResourceQuota | None:
        name = _name(member)
        if (own := self._quotas.get(name)) is None:
            own = {(flavor, it.name): it for flavor, it in quotas(member)}
            self._quotas[name] = own
        return own.get(key)


def _name(member: _Member) -> _Name:
    return type(member), member.metadata.name


def _above(member: _Member) -> str:
    """Return the name of the cohort above; "" without one."""
    if isinstance(member, Cohort):
        return member.spec.parent_name
    return member.spec.cohort_name or member.spec.cohort


def quotas(member: _Member) -> Iterator[tuple[str, ResourceQuota]]:
    """Yield the own quotas of a ClusterQueue or a cohort, each with the name of its flavor."""
    for group in member.spec.resource_groups or ():
        for flavor in group.flavors or ():
            for it in flavor.resources or ():
                yield flavor.name, it


def amount(resource: str, quantity: Quantity) -> int:
    """Return an amount of a resource: millicores of CPU, and whole units of everything else.

    Raises:
        QuantityError: It can't be read.
    """
    nanos = parse_nanos(str(quantity))
    return millis_of(nanos) if resource == CPU else whole_of(nanos)

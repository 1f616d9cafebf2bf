"""How much quota a ClusterQueue has left, and how much it could ever have.

The arithmetic of ``pkg/cache/scheduler/resource_node.go`` of Kueue 0.15.0: quotas add up from the
ClusterQueues to the root of their cohorts. What may not be lent stays with its owner, and nobody
borrows more than the own limit.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from gpuspawner.kube.kueue import ClusterQueue, Cohort, FlavorUsage, ResourceGroup
from gpuspawner.kube.meta import Quantity
from gpuspawner.kube.quantity import millis_of, parse_nanos, whole_of
from gpuspawner.scheduling.requests import CPU

FlavorResource = tuple[str, str]
"""A flavor and a resource."""


class QuotaError(ValueError):
    """Quotas can't be read; Kueue admits nothing if a cohort is its own ancestor."""


class _Quota(msgspec.Struct, frozen=True):
    """What a node of the tree has by itself; None without a limit."""

    nominal: int
    borrowing: int | None
    lending: int | None


class QuotaNode(msgspec.Struct, eq=False):
    """A ClusterQueue or a cohort, and what is reserved in it.

    Amounts are millicores of CPU, and whole units of everything else.
    """

    parent: "QuotaNode | None" = None
    quotas: dict[FlavorResource, _Quota] = msgspec.field(default_factory=dict)
    subtree: dict[FlavorResource, int] = msgspec.field(default_factory=lambda: defaultdict(int))
    usage: dict[FlavorResource, int] = msgspec.field(default_factory=lambda: defaultdict(int))

    def available(self, key: FlavorResource) -> int:
        """Return what is left; it may be negative, if quota was taken away."""
        left = self.subtree[key] - self.usage[key]
        if self.parent is None:
            return left
        local = self._local(key)
        above = self.parent.available(key)
        limit = self._limit(key)
        if limit is not None:
            above = min(above, self.subtree[key] - local - self._borrowed(key) + limit)
        return max(0, local - self.usage[key]) + above

    def most(self, key: FlavorResource) -> int:
        """Return what it could have if nothing was reserved."""
        if self.parent is None:
            return self.subtree[key]
        most = self._local(key) + self.parent.most(key)
        limit = self._limit(key)
        return most if limit is None else min(most, self.subtree[key] + limit)

    def add_to_parents(self) -> None:
        """Add what it has and uses to the cohorts above it; once, from the leaves to the root."""
        if self.parent is None:
            return
        for key in {*self.subtree, *self.usage}:
            local = self._local(key)
            self.parent.subtree[key] += self.subtree[key] - local
            self.parent.usage[key] += self._borrowed(key)

    def _local(self, key: FlavorResource) -> int:
        """Return what is never lent."""
        quota = self.quotas.get(key)
        lent = quota.lending if quota else None
        return 0 if lent is None else max(0, self.subtree[key] - lent)

    def _limit(self, key: FlavorResource) -> int | None:
        quota = self.quotas.get(key)
        return quota.borrowing if quota else None

    def _borrowed(self, key: FlavorResource) -> int:
        """Return what is used of what can be lent."""
        return max(0, self.usage[key] - self._local(key))


def tree(queues: Iterable[ClusterQueue], cohorts: Iterable[Cohort]) -> Mapping[str, QuotaNode]:
    """Return the ClusterQueues by name, in their cohorts.

    Raises:
        QuotaError: A cohort is above itself.
        QuantityError: An amount can't be read.
    """
    above = {it.metadata.name: it for it in cohorts}
    groups: dict[str, QuotaNode] = {}
    leaves = {}
    for queue in queues:
        node = QuotaNode(_group(queue.spec.cohort_name or queue.spec.cohort, above, groups, ()))
        _fill(node, queue.spec.resource_groups)
        node.usage.update(_used(queue.status.flavors_reservation))
        leaves[queue.metadata.name] = node
    for name in above:
        _group(name, above, groups, ())
    for node in sorted((*leaves.values(), *groups.values()), key=_depth, reverse=True):
        node.add_to_parents()
    return leaves


def _group(
    name: str, cohorts: Mapping[str, Cohort], made: dict[str, QuotaNode], below: tuple[str, ...]
) -> QuotaNode | None:
    """Return the cohort of a name and those above it; None without a name."""
    if not name:
        return None
    if name in below:
        raise QuotaError(f"the cohort {name} is above itself")
    if name not in made:
        cohort = cohorts.get(name, Cohort())  # it may have no object of its own
        parent = _group(cohort.spec.parent_name, cohorts, made, (*below, name))
        made[name] = QuotaNode(parent)
        _fill(made[name], cohort.spec.resource_groups)
    return made[name]


def _depth(node: QuotaNode) -> int:
    return 0 if node.parent is None else 1 + _depth(node.parent)


def _fill(node: QuotaNode, groups: Iterable[ResourceGroup] | None) -> None:
    for group in groups or ():
        for flavor in group.flavors or ():
            for it in flavor.resources or ():
                key = flavor.name, it.name
                node.quotas[key] = _Quota(
                    amount(it.name, it.nominal_quota),
                    None if it.borrowing_limit is None else amount(it.name, it.borrowing_limit),
                    None if it.lending_limit is None else amount(it.name, it.lending_limit),
                )
                node.subtree[key] = node.quotas[key].nominal


def _used(usage: Iterable[FlavorUsage] | None) -> dict[FlavorResource, int]:
    return {
        (flavor.name, it.name): amount(it.name, it.total)
        for flavor in usage or ()
        for it in flavor.resources or ()
    }


def amount(resource: str, quantity: Quantity) -> int:
    """Return an amount of a resource: millicores of CPU, and whole units of everything else.

    Raises:
        QuantityError: It can't be read.
    """
    nanos = parse_nanos(str(quantity))
    return millis_of(nanos) if resource == CPU else whole_of(nanos)

"""What each group takes of a policy's limits, kept up to date with every change of a pod.

Counting a group's servers anew for each start would take long in a namespace of thousands.
"""

from collections.abc import Iterable

from gpuspawner.kube.meta import Key
from gpuspawner.kube.recent import Recent
from gpuspawner.policies.charges import Charge, Who
from gpuspawner.policies.policies import Amount, Measure, Per, Policy
from gpuspawner.policies.usage import Charges, Usage

MOST = 1000
"""How many shares are kept up to date. One that was dropped is counted anew for the next start."""


class Share:
    """The servers of one group that count toward a policy's limits.

    A server counts if its owner is a member now, or if it was charged to the group when it started;
    so it counts until it ends, whatever becomes of the membership.

    Args:
        members: The members, as in `Charge.owners`.
    """

    def __init__(self, usage: Usage, policy: Policy, group: str, members: frozenset[Who]) -> None:
        self._members = members
        self._policy = policy
        self._group = group
        limits = (it for it in policy.limits if it.per is Per.GROUP)
        self._measures = tuple(dict.fromkeys(it.measure for it in limits))
        self._totals: dict[Measure, Amount] = dict.fromkeys(self._measures, 0)
        self._parts: dict[Key, dict[Measure, Amount]] = {}
        for key, charges in usage.of_group(group, members).items():
            self.see(key, charges)

    def is_of(self, policy: Policy, members: frozenset[Who]) -> bool:
        """Whether it counts for this policy and these members."""
        same = policy is self._policy or policy == self._policy
        return same and members == self._members

    def see(self, key: Key, charges: Charges) -> None:
        """Count what a server takes now, instead of what it took before."""
        before = self._parts.pop(key, None)
        if before is not None:
            for measure, amount in before.items():
                self._totals[measure] -= amount
        counted = [it for it in charges if self._counts(it)]
        if counted:
            after = self._parts[key] = {it: most(counted, it) for it in self._measures}
            for measure, amount in after.items():
                self._totals[measure] += amount

    def used(self, measure: Measure, besides: Key) -> Amount:
        """Return what the group takes, without one server."""
        return self._totals[measure] - self._parts.get(besides, {}).get(measure, 0)

    def _counts(self, charge: Charge) -> bool:
        if not self._policy.covers(charge.server):
            return False
        is_charged = self._group in charge.groups and self._policy.name in charge.policies
        return is_charged or not self._members.isdisjoint(charge.owners)


class Shares:
    """The shares that have been asked for last.

    A function may write policies under ever new names, and each change of a pod reaches each share.
    """

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._shares = Recent[tuple[str, str], Share](MOST)
        usage.listen(self._see)

    def of(self, policy: Policy, group: str, members: frozenset[Who]) -> Share:
        """Return the share of a group with these members."""
        key = (policy.name, group)  # a policy's own hash takes long
        share = self._shares.get(key)
        if share is None or not share.is_of(policy, members):
            share = Share(self._usage, policy, group, members)
        self._shares[key] = share
        return share

    def _see(self, key: Key, charges: Charges) -> None:
        for share in self._shares.values():
            share.see(key, charges)


def most(charges: Iterable[Charge], measure: Measure) -> Amount:
    """Return what a pod and a reservation of its name take: the larger amount, not both."""
    return max((it.of(measure) for it in charges), default=0)

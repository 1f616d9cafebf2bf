"""What the servers of a hub's namespace take, by pods and reservations, and what groups take.

A reservation stands for a pod that isn't shown yet. When both are there, each amount counts once:
the larger one, because the pod may be one of an earlier start. The shares of groups are kept up to
date with every change of a pod: counting a group's servers anew for each start would take long in a
namespace of thousands.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from gpuspawner.kube.caches import Recent
from gpuspawner.kube.meta import Key
from gpuspawner.kube.objects import AnyObject, Undecodable
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kube.servers import ServerPod
from gpuspawner.policies.charges import Charge, Meter, Who
from gpuspawner.policies.pod_owners import Claims
from gpuspawner.policies.policies import Amount, Measure, Per, Policy

Charges = tuple[Charge, ...]
"""What a pod and a reservation of its name take; empty without either."""


class _Index:
    """The servers by names that their charges have."""

    def __init__(self, names: Callable[[Charge], frozenset[Who]]) -> None:
        self._names = names
        self._keys: dict[Who, dict[Key, None]] = {}

    def find(self, names: Iterable[Who]) -> dict[Key, None]:
        """Return the keys of all servers with one of the names."""
        found: dict[Key, None] = {}
        for name in self._keys.keys() & names:
            found |= self._keys[name]
        return found

    def change(self, key: Key, before: Charges, after: Charges) -> None:
        """Note that a server's charges have changed."""
        old = {name for charge in before for name in self._names(charge)}
        new = {name for charge in after for name in self._names(charge)}
        for name in old - new:
            del self._keys[name][key]
            if not self._keys[name]:
                del self._keys[name]
        for name in new - old:
            self._keys.setdefault(name, {})[key] = None


MOST = 1000
"""How many shares are kept up to date. One that was dropped is counted anew for the next start."""


class Usage:
    """What each server takes at this moment.

    Attributes:
        version: Increases with every change.
        pods: What each pod takes that exists.
    """

    def __init__(self) -> None:
        self.version = 0
        self._pods: dict[Key, Charge] = {}
        self.pods: Mapping[Key, Charge] = MappingProxyType(self._pods)
        self._reserved: dict[Key, Charge] = {}
        self._by_owner = _Index(lambda charge: charge.owners)
        self._by_group = _Index(lambda charge: charge.groups)
        self._shares = Recent[tuple[str, str], Share](MOST)
        self._listeners: list[Callable[[Key, Charges], None]] = []

    def listen(self, call: Callable[[Key, Charges], None]) -> None:
        """Call *call* with what a server takes now, whenever that has changed."""
        self._listeners.append(call)

    def put(self, key: Key, charge: Charge | None) -> None:
        """Note what a pod takes; None if it is gone, or nobody's server."""
        self._set(self._pods, key, charge)

    def reserve(self, key: Key, charge: Charge | None) -> None:
        """Note what a server will take whose pod isn't shown yet; None if it is, or won't come."""
        self._set(self._reserved, key, charge)

    def of_owner(self, owners: Iterable[Who]) -> dict[Key, Charges]:
        """Return the servers of one owner, as charges name them."""
        return {key: self._charges(key) for key in self._by_owner.find(owners)}

    def of_group(self, group: str, members: Iterable[Who]) -> dict[Key, Charges]:
        """Return the servers that were charged to a group, and those of its members."""
        found = self._by_group.find({group}) | self._by_owner.find(members)
        return {key: self._charges(key) for key in found}

    def share(self, policy: Policy, group: str, members: frozenset[Who]) -> "Share":
        """Return the share of a group with these members, and keep it up to date.

        Only the last ones are kept: a function may write policies under ever new names, and each
        change of a pod reaches each share.
        """
        key = (policy.name, group)  # a policy's own hash takes long
        share = self._shares.get(key)
        if share is None or not share.is_of(policy, members):
            share = Share(self, policy, group, members)
        self._shares[key] = share
        return share

    def _charges(self, key: Key) -> Charges:
        found = self._pods.get(key), self._reserved.get(key)
        return tuple(charge for charge in found if charge is not None)

    def _set(self, store: dict[Key, Charge], key: Key, charge: Charge | None) -> None:
        before = self._charges(key)
        if charge is None:
            store.pop(key, None)
        else:
            store[key] = charge
        after = self._charges(key)
        if before == after:
            return
        self.version += 1
        self._by_owner.change(key, before, after)
        self._by_group.change(key, before, after)
        for share in self._shares.values():
            share.see(key, after)
        for call in self._listeners:
            call(key, after)


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
        self._totals: dict[Measure, Amount] = dict.fromkeys((it.measure for it in limits), 0)
        self._parts: dict[Key, dict[Measure, Amount]] = {}
        for key, charges in usage.of_group(group, members).items():
            self.see(key, charges)

    def is_of(self, policy: Policy, members: frozenset[Who]) -> bool:
        """Whether it counts for this policy and these members."""
        same = policy is self._policy or policy == self._policy
        return same and members == self._members

    def see(self, key: Key, charges: Charges) -> None:
        """Count what a server takes now, instead of what it took before."""
        for measure, amount in self._parts.pop(key, {}).items():
            self._totals[measure] -= amount
        counted = [it for it in charges if self._counts(it)]
        if counted:
            after = self._parts[key] = {it: most(counted, it) for it in self._totals}
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


def most(charges: Iterable[Charge], measure: Measure) -> Amount:
    """Return what a pod and a reservation of its name take: the larger amount, not both."""
    return max((it.of(measure) for it in charges), default=0)


class Ledger:
    """The store that a reflector of servers' pods writes.

    Args:
        meter: Returns the meter of this moment: discovered accelerators change.

    Attributes:
        claims: Whose servers the pods are.
        pods: The pods as read; those that can't be read are in `unread`.
        unread: The pods of which nobody knows what they take.
    """

    def __init__(self, usage: Usage, meter: Callable[[], Meter], claims: Claims) -> None:
        self.usage = usage
        self.claims = claims
        self.pods: dict[Key, ServerPod] = {}
        self.unread: set[Key] = set()
        self._meter = meter
        self._last: Meter | None = None

    def refresh(self) -> None:
        """Count all pods again if the accelerators have changed since."""
        meter = self._meter()
        if meter != self._last:
            self._last = meter
            self.count_again()

    def count_again(self) -> None:
        """Count all pods again."""
        for pod in list(self.pods.values()):  # `put` drops those that it can't read
            self.put(pod)

    def know(self, key: Key, whose: Charge, uid: str) -> None:
        """Count the pod of this uid for a server, unless it is known whose it is."""
        if self.claims.pods.setdefault(uid, whose) is whose and key in self.pods:
            self.put(self.pods[key])

    def devices(self, pod: ServerPod) -> int:
        """Return how many devices a pod has that count as GPUs."""
        return self._meter().devices(pod)

    def put(self, thing: AnyObject | Undecodable) -> None:
        """Store the newest version of a pod."""
        if isinstance(thing, Undecodable):
            self._miss((thing.namespace, thing.name))
        elif isinstance(thing, ServerPod):
            key = thing.metadata.key
            if (last := self.pods.get(key)) and last.metadata.uid != thing.metadata.uid:
                self.claims.pods.pop(last.metadata.uid, None)  # it went while no watch told
            self._last = self._last or self._meter()
            whose = self.claims.of(thing)
            try:  # what isn't a user's server doesn't count, whatever it takes
                charge = self._last.charge(thing, whose) if whose else None
            except QuantityError:
                self._miss(key)
                return
            self.unread.discard(key)
            self.pods[key] = thing
            self.usage.put(key, charge)

    def remove(self, kind: str, namespace: str, name: str) -> None:  # noqa: ARG002, of the protocol
        """Drop a pod, if it exists."""
        pod = self.pods.get((namespace, name))
        self._drop((namespace, name))
        if pod is not None:
            self.claims.pods.pop(pod.metadata.uid, None)

    def keys(self, kind: str) -> Iterator[Key]:  # noqa: ARG002, of the protocol
        """Yield (namespace, name) of all pods."""
        yield from self.pods
        yield from self.unread

    def mark_known(self, kind: str) -> None:
        """Do nothing: the reflector's own state tells whether all pods are known."""

    def mark_unknown(self, kind: str) -> None:
        """Do nothing, as in `mark_known`."""

    def _miss(self, key: Key) -> None:
        self._drop(key)
        self.unread.add(key)

    def _drop(self, key: Key) -> None:
        self.pods.pop(key, None)
        self.unread.discard(key)
        self.usage.put(key, None)

"""Whether a server keeps all limits of the policies that apply to it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from gpuspawner.kube.meta import Key
from gpuspawner.policies.charges import Charge, Who
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Amount, Limit, Per, Policy
from gpuspawner.policies.usage import Charges, Shares, Usage, most

Servers = Mapping[Key, Charges]
"""What servers take, by the names of their pods."""

Members = Callable[[Policy, str], frozenset[Who]]
"""Returns the members of a group to whom a policy applies, as `Charge.owners` names them."""


@dataclass(frozen=True)
class Counts:
    """The servers that count toward the limits of one server, without that server itself.

    Attributes:
        owners: Its owner, as in `Charge.owners`.
        besides: The key of its own pod, which the new one replaces.
    """

    usage: Usage
    shares: Shares
    owners: frozenset[Who]
    besides: Key
    members: Members
    _found: dict[object, Mapping[str, Amount]] = field(default_factory=dict, init=False)

    @cached_property
    def own(self) -> Servers:
        """The owner's other servers."""
        servers = self.usage.of_owner(self.owners)
        servers.pop(self.besides, None)
        return servers

    def own_of(self, policy: Policy, limit: Limit) -> Mapping[str, Amount]:
        """Return what the owner's other servers take of a limit, by name, if they take any."""
        about = (policy.servers, policy.excepted_servers, limit.measure)
        if about not in self._found:
            self._found[about] = self._own_of(policy, limit)
        return self._found[about]

    def _own_of(self, policy: Policy, limit: Limit) -> Mapping[str, Amount]:
        found: dict[str, Amount] = {}
        for charges in self.own.values():
            covered = [it for it in charges if policy.covers(it.server)]
            if amount := most(covered, limit.measure):
                name = covered[0].server
                found[name] = found.get(name, 0) + amount
        return dict(sorted(found.items()))

    def of_group(self, policy: Policy, group: str, limit: Limit) -> Amount:
        """Return what a group's other servers take of a limit."""
        members = self.members(policy, group)
        if not self.owners <= members:  # the owner has just joined the group
            members |= self.owners
        share = self.shares.of(policy, group, members)
        return share.used(limit.measure, self.besides)


class Standing(msgspec.Struct, frozen=True):
    """One limit of one policy, and what counts toward it.

    Attributes:
        group: The group whose share it is; "" if the limit isn't per group.
        used: What the other servers take.
        servers: The names of the owner's own servers that take part of it.
    """

    policy: Policy
    limit: Limit
    group: str = ""
    used: Amount = 0
    servers: tuple[str, ...] = ()

    @property
    def left(self) -> Amount:
        """What one more server can take; not less than 0."""
        return max(0, self.limit.most - self.used)


def standings(policies: Iterable[Policy], owner: Owner, counts: Counts) -> Iterator[Standing]:
    """Yield how much an owner has used of each limit of the policies that apply to a server."""
    for policy in policies:
        for limit in policy.limits:
            for group, used in _used(policy, limit, owner, counts):
                yield _standing(policy, limit, group, used, counts)


def broken(
    policies: Iterable[Policy], owner: Owner, counts: Counts, charge: Charge
) -> Iterator[Standing]:
    """Yield the limits that one more server would break; only what it takes part of is counted."""
    for policy in policies:
        for limit in policy.limits:
            asked = charge.of(limit.measure)
            if not asked:
                continue
            for group, used in _used(policy, limit, owner, counts):
                if asked + used > limit.most:
                    yield _standing(policy, limit, group, used, counts)


def _used(
    policy: Policy, limit: Limit, owner: Owner, counts: Counts
) -> Iterator[tuple[str, Amount]]:
    """Yield what other servers take of a limit, for each group that it is about; "" for none."""
    match limit.per:
        case Per.SERVER:
            yield "", 0
        case Per.USER:
            yield "", sum(counts.own_of(policy, limit).values())
        case Per.GROUP:
            for group in policy.charged_groups(owner):
                yield group, counts.of_group(policy, group, limit)


def _standing(policy: Policy, limit: Limit, group: str, used: Amount, counts: Counts) -> Standing:
    own = () if limit.per is Per.SERVER else tuple(counts.own_of(policy, limit))
    return Standing(policy, limit, group, used, own)

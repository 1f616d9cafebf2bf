"""What counts toward each limit of the policies that apply to a server."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from gpuspawner.kube.meta import Key
from gpuspawner.policies.charges import Charge, Who
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Amount, Limit, Per, Policy
from gpuspawner.policies.usage import Charges, Usage, most

Servers = Mapping[Key, Charges]
"""What servers take, by the names of their pods."""

Members = Callable[[Policy, str], frozenset[Who]]
"""Returns the members of a group to whom a policy applies, as `Charge.owners` names them."""


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


@dataclass(frozen=True)
class Counts:
    """The servers that count toward the limits of one server, without that server itself.

    Attributes:
        policies: Those that apply to it.
        owners: Its owner, as in `Charge.owners`.
        besides: The key of its own pod, which the new one replaces.
    """

    policies: tuple[Policy, ...]
    owner: Owner
    owners: frozenset[Who]
    usage: Usage
    besides: Key
    members: Members
    _found: dict[object, Mapping[str, Amount]] = field(default_factory=dict, init=False)

    def standings(self, asked: Charge | None = None) -> Iterator[Standing]:
        """Yield how much is used of each limit; with a charge, of those that it takes part of."""
        for policy in self.policies:
            for limit in policy.limits:
                if asked is None or asked.of(limit.measure):
                    own = () if limit.per is Per.SERVER else tuple(self._own_of(policy, limit))
                    for group, used in self._used(policy, limit):
                        yield Standing(policy, limit, group, used, own)

    def _used(self, policy: Policy, limit: Limit) -> Iterator[tuple[str, Amount]]:
        """Yield what other servers take of a limit, for each group that it is about, or ""."""
        match limit.per:
            case Per.SERVER:
                yield "", 0
            case Per.USER:
                yield "", sum(self._own_of(policy, limit).values())
            case Per.GROUP:
                for group in policy.charged_groups(self.owner):
                    yield group, self._of_group(policy, group, limit)

    @cached_property
    def _own(self) -> Servers:
        """The owner's other servers."""
        servers = self.usage.of_owner(self.owners)
        servers.pop(self.besides, None)
        return servers

    def _own_of(self, policy: Policy, limit: Limit) -> Mapping[str, Amount]:
        """Return what the owner's other servers take of a limit, by name, if they take any."""
        about = (policy.servers, policy.excepted_servers, limit.measure)
        if about not in self._found:
            found: dict[str, Amount] = {}
            for charges in self._own.values():
                covered = [it for it in charges if policy.covers(it.server)]
                if amount := most(covered, limit.measure):
                    name = covered[0].server
                    found[name] = found.get(name, 0) + amount
            self._found[about] = dict(sorted(found.items()))
        return self._found[about]

    def _of_group(self, policy: Policy, group: str, limit: Limit) -> Amount:
        """Return what a group's other servers take of a limit."""
        members = self.members(policy, group)
        if not self.owners <= members:  # the owner has just joined the group
            members |= self.owners
        return self.usage.share(policy, group, members).used(limit.measure, self.besides)

"""What counts toward each limit, and why a policy denies a server: facts, without sentences."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from operator import attrgetter

import msgspec
from msgspec.structs import replace

from gpuspawner.kube.meta import Key
from gpuspawner.offers.shapes import same_key
from gpuspawner.policies.charges import Charge, Who
from gpuspawner.policies.owner import Owner
from gpuspawner.policies.policies import Amount, Limit, Per, Policy
from gpuspawner.policies.usage import Charges, Usage, most


class OfferKind(StrEnum):
    """What a policy may leave on offer, or not."""

    ACCELERATOR = "accelerator"
    IMAGE = "image"
    PROFILE = "profile"


class Wanted(msgspec.Struct, frozen=True):
    """What a server has of the offers; None: nothing of this kind, which every policy allows."""

    accelerator: str | None = None
    image: str | None = None
    profile: str | None = None


class Withheld(msgspec.Struct, frozen=True):
    """The policy doesn't leave this on offer.

    Attributes:
        key: Of the accelerator, image or profile.
    """

    policy: Policy
    choice: OfferKind
    key: str

    @property
    def is_shown(self) -> bool:
        """As `gpuspawner.preflight.availability.DeniedByPolicy.is_shown`."""
        return self.policy.shows_withheld


def withheld(policies: Iterable[Policy], wanted: Wanted) -> Iterator[Withheld]:
    """Yield what policies don't leave on offer.

    The key of an accelerator may be the slug of a profile, and policies name what isn't configured
    as the hub would discover it. If a ``modify_pod_hook`` gives a profile's server a GPU, only the
    profile says so.
    """
    found = wanted.accelerator
    called = {it for it in (found, wanted.profile) if it is not None}
    for policy in policies:
        left = policy.accelerators
        if left is not None and found is not None and not any(names(left, it) for it in called):
            yield Withheld(policy, OfferKind.ACCELERATOR, found)
        for choice, left, key in (
            (OfferKind.IMAGE, policy.images, wanted.image),
            (OfferKind.PROFILE, policy.profiles, wanted.profile),
        ):
            if left is not None and key is not None and key not in left:
                yield Withheld(policy, choice, key)


def names(listed: Container[str], accelerator: str) -> bool:
    """Whether a policy's list names an accelerator, or a profile by its slug."""
    return accelerator in listed or same_key(accelerator) in listed


# What counts toward limits.

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


class OverLimit(msgspec.Struct, frozen=True):
    """The server would break a limit.

    Attributes:
        asked: What it would take of it; more than what is left.
    """

    standing: Standing
    asked: Amount

    @property
    def policy(self) -> Policy:
        """The policy whose limit it is."""
        return self.standing.policy

    @property
    def is_shown(self) -> bool:
        """As `gpuspawner.preflight.availability.DeniedByPolicy.is_shown`."""
        return self.policy.shows_withheld

    @property
    def may_pass(self) -> bool:
        """Whether the server could start if others ended."""
        return self.asked <= self.standing.limit.most

    @property
    def servers_left(self) -> int:
        """How many servers that ask for so much the limit still allows."""
        return int(self.standing.left // self.asked)


class Uncounted(msgspec.Struct, frozen=True):
    """The hub can't count right now what the limits are about, so it allows nothing.

    Attributes:
        why: For administrators.
    """

    why: str


PolicyDenial = Withheld | OverLimit | Uncounted


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

    def over_limits(self, charge: Charge) -> Iterator[OverLimit]:
        """Yield the limits that one more server would break; first, those that never allow it."""
        asked = ((it, charge.of(it.limit.measure)) for it in self.standings(charge))
        found = [OverLimit(it, amount) for it, amount in asked if amount > it.left]
        yield from (it for it in found if not it.may_pass)
        yield from (it for it in found if it.may_pass)

    def left_to_members(self, charge: Charge, servers: int) -> tuple[int, OverLimit | None]:
        """Return how many owners like this one can have such a server each, if this one can.

        The second is what the next one would break; None if all can. Only a group's limits count
        the servers of several owners.
        """
        shared = (
            OverLimit(it, charge.of(it.limit.measure))
            for it in self.standings(charge)
            if it.limit.per is Per.GROUP
        )
        first = min(shared, key=attrgetter("servers_left"), default=None)
        if first is None or (left := first.servers_left) >= servers:
            return servers, None
        used = first.standing.used + left * first.asked
        return left, replace(first, standing=replace(first.standing, used=used))

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
    def _own(self) -> Mapping[Key, Charges]:
        """What the owner's other servers take, by the names of their pods."""
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

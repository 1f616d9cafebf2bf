"""Why a policy denies a server, as facts; `gpuspawner.messages` makes the sentences."""

from collections.abc import Container, Iterable, Iterator
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from gpuspawner.offers.shapes import same_key
from gpuspawner.policies.charges import Charge
from gpuspawner.policies.limits import Counts, Standing
from gpuspawner.policies.policies import Amount, Per, Policy


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


class Uncounted(msgspec.Struct, frozen=True):
    """The hub can't count right now what the limits are about, so it allows nothing.

    Attributes:
        why: For administrators.
    """

    why: str


PolicyDenial = Withheld | OverLimit | Uncounted


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


def over_limits(counts: Counts, charge: Charge) -> Iterator[OverLimit]:
    """Yield the limits that one more server would break, those that can never allow it first."""
    asked = ((it, charge.of(it.limit.measure)) for it in counts.standings(charge))
    found = [OverLimit(it, amount) for it, amount in asked if amount > it.left]
    yield from (it for it in found if not it.may_pass)
    yield from (it for it in found if it.may_pass)


def left_to_members(counts: Counts, charge: Charge, servers: int) -> tuple[int, OverLimit | None]:
    """Return how many owners like this one can have such a server each, if this one can.

    The second is what the next one would break; None if all can. Only a group's limits count the
    servers of several owners.
    """
    shared = (
        OverLimit(it, charge.of(it.limit.measure))
        for it in counts.standings(charge)
        if it.limit.per is Per.GROUP
    )
    first = min(shared, key=_still, default=None)
    if first is None or (left := _still(first)) >= servers:
        return servers, None
    used = first.standing.used + left * first.asked
    return left, replace(first, standing=replace(first.standing, used=used))


def _still(limited: OverLimit) -> int:
    """Return how many servers that ask for so much the limit still allows."""
    return int(limited.standing.left // limited.asked)

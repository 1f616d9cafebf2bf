"""What limits leave of an accelerator to one more server of an owner, beside those that run."""

from collections.abc import Iterable, Iterator
from types import MappingProxyType

import msgspec
from msgspec.structs import replace

from gpuspawner.offers.manifest import part_of
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.types import Accelerator
from gpuspawner.policies.allowed_offers import Sizes
from gpuspawner.policies.charges import REQUESTED, Charge
from gpuspawner.policies.limits import Counts, OverLimit, Standing, Wanted, Withheld, withheld
from gpuspawner.policies.policies import Amount, Limit, Measure, Per, Policy, What
from gpuspawner.scheduling.requests import CPU, MEMORY

# What is left to one user: the tightest of all limits on the same thing.


class Allowance(msgspec.Struct, frozen=True):
    """What a user and the user's groups may still take.

    Attributes:
        standings: For each measure, the tightest limit of the user, and of each group.
        lifetime: Seconds after which a server with a GPU ends; None for no end.
        is_counted: Whether the hub can count right now; if not, nothing is left.
    """

    standings: tuple[Standing, ...] = ()
    lifetime: int | None = None
    is_counted: bool = True

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of the user's servers that take part of a limit."""
        return tuple(sorted({name for it in self.standings for name in it.servers}))


def tightest(found: Iterable[Standing]) -> tuple[Standing, ...]:
    """Return the standings of several servers together, without looser ones about the same."""
    kept: dict[tuple[Per, Measure, str], Standing] = {}
    for standing in found:
        about = (standing.limit.per, standing.limit.measure, standing.group)
        if standing.limit.per is Per.SERVER:
            continue
        if about not in kept or standing.left < kept[about].left:
            kept[about] = standing
    return tuple(kept.values())


class Remaining(msgspec.Struct, frozen=True):
    """What one more server can have of an accelerator, or without one.

    Attributes:
        gpus: The most that can be chosen; None if nothing on offer is too much.
        reached: What leaves nothing; None if the policies allow the smallest server.
    """

    gpus: int | None = None
    reached: OverLimit | Withheld | None = None


class OneMore(msgspec.Struct, frozen=True):
    """One more server of an owner, with an accelerator (None: without one).

    Attributes:
        offers: The owner's.
        requests: What the pod of the smallest server requests, by resource; None if nobody can
            tell: then the smallest sizes on offer count.
    """

    offers: Offers
    accelerator: Accelerator | None
    counts: Counts
    sizes: Sizes
    requests: tuple[tuple[str, int], ...] | None = None

    def remaining(self) -> Remaining:
        """Return what is left of the accelerator.

        What no server of the owner may have isn't among their offers, so what is over a limit here
        is so only as long as other servers run.
        """
        choices = sorted(self.offers.choices(self.accelerator).counts)
        kept = 0
        for count in choices:
            over = [it for it in self.counts.over_limits(self._charge(count)) if it.may_pass]
            if over and count == choices[0]:
                return Remaining(0, over[0])
            if over:
                return Remaining(kept)
            kept = count
        return Remaining()

    def never(self) -> OverLimit | Withheld | None:
        """Return what denies the owner every such server for ever; None if nothing does.

        Servers without a GPU stay among the owner's offers even then, and so does an accelerator
        that has no sizes to choose from: then KubeSpawner's own are too large.
        """
        choices = self.offers.choices(self.accelerator)
        images = choices.images if self.accelerator is None else ()
        policies = self.counts.policies
        denials = [next(withheld(policies, Wanted(image=it.key)), None) for it in images]
        if denials and all(denials):
            return denials[0]
        over = self.counts.over_limits(self._charge(min(choices.counts)))
        return next((it for it in over if not it.may_pass), None)

    def _charge(self, count: int) -> Charge:
        """Return what the smallest server takes with so many GPUs."""
        accelerator = self.accelerator
        requests = dict(self._listed() if self.requests is None else self.requests)
        taken: dict[Measure, Amount] = {
            Measure(what): requests.get(resource, 0) for what, resource in REQUESTED.items()
        }
        if accelerator is not None:
            gpus = count * self.sizes.weights.get(accelerator.resource, 1)
            for of in ("", accelerator.key, accelerator.resource):
                taken[Measure(What.GPUS, of)] = gpus
            taken[Measure(What.GPU_SERVERS)] = 1
        return Charge(frozenset(), amounts=MappingProxyType(taken))

    def _listed(self) -> tuple[tuple[str, int], ...]:
        """Return what the smallest sizes on offer request."""
        choices = self.offers.choices(self.accelerator)
        return (
            (MEMORY, part_of(choices.least_memory or 0, self.sizes.memory)),
            (CPU, part_of(min(choices.cpu, default=0), self.sizes.cpu)),
        )


def policies_left(policies: Iterable[Policy], found: Iterable[Standing]) -> Iterator[Policy]:
    """Yield the policies with that part of each limit which other servers leave."""
    left: dict[tuple[str, Limit], Amount] = {}
    for it in found:
        about = (it.policy.name, it.limit)
        left[about] = min(it.left, left.get(about, it.left))
    for policy in policies:
        limits = (replace(it, most=left.get((policy.name, it), it.most)) for it in policy.limits)
        yield replace(policy, limits=tuple(limits))

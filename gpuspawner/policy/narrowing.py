"""What the policies leave of the offers to one user, whatever is in use."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

import msgspec

from gpuspawner.offers import Accelerator, Memory, Offers
from gpuspawner.offers.types import Default
from gpuspawner.policy.policies import Amount, Measure, Policy, What


class Sizes(msgspec.Struct, frozen=True):
    """How amounts on offer become requests, in which policies count.

    Attributes:
        weights: How much of a GPU one device of a resource is; 1 if it isn't listed.
        memory, cpu: The fraction of the chosen amount that a pod requests.
    """

    weights: Mapping[str, Amount]
    memory: float = 1.0
    cpu: float = 1.0


def narrow(offers: Offers, policies: Iterable[Policy], sizes: Sizes) -> Offers:
    """Return the offers without those that no server of this user may have at any time."""
    ruled = tuple(policies)
    if not ruled:
        return offers
    left = (_accelerator(it, ruled, sizes) for it in offers.accelerators.values())
    images = {
        key: it
        for key, it in offers.images.items()
        if all(policy.images is None or key in policy.images for policy in ruled)
    }
    all_images = all(policy.images is None for policy in ruled)
    hub = replace(
        offers,
        accelerators=MappingProxyType({it.key: it for it in left if it is not None}),
        images=MappingProxyType(images),
        memory_choices=_memory(offers.memory_choices, ruled, sizes),
        cpu_choices=_cpu(offers.cpu_choices, ruled, sizes),
        unlisted_image=offers.unlisted_image if all_images else None,
    )
    accelerators = {key: _with_default(it, hub) for key, it in hub.accelerators.items()}
    default = offers.default_accelerator
    return replace(
        hub,
        accelerators=MappingProxyType(accelerators),
        default_accelerator=default if default in accelerators else next(iter(accelerators), None),
    )


def _with_default(accelerator: Accelerator, offers: Offers) -> Accelerator:
    """Return an accelerator without those defaults that are no longer on offer."""
    choices, own = offers.choices(accelerator), accelerator.default
    return replace(
        accelerator,
        default=Default(
            own.gpus if own.gpus in choices.counts else None,
            own.image if own.image in [it.key for it in choices.images] else None,
            own.memory if own.memory in choices.sizes else None,
            own.cpu if own.cpu in choices.cpu else None,
        ),
    )


def shown_withheld(
    offers: Offers, policies: Iterable[Policy], sizes: Sizes
) -> Iterator[tuple[Accelerator, Policy]]:
    """Yield the accelerators that policies withhold and yet show, each with one such policy."""
    ruled = [it for it in policies if it.shows_withheld]
    for accelerator in offers.accelerators.values():
        for policy in ruled:
            if _accelerator(accelerator, (policy,), sizes) is None:
                yield accelerator, policy
                break


def most(policies: Iterable[Policy], measure: Measure) -> Amount | None:
    """Return the most of this that one server may have; None for no limit.

    A limit on several servers together is one on each of them, too.
    """
    return min(
        (it.most for policy in policies for it in policy.limits if it.measure == measure),
        default=None,
    )


def _accelerator(
    accelerator: Accelerator, policies: tuple[Policy, ...], sizes: Sizes
) -> Accelerator | None:
    if any(
        it.accelerators is not None and accelerator.key not in it.accelerators for it in policies
    ):
        return None
    weight = sizes.weights.get(accelerator.resource, 1)
    kinds = ("", accelerator.key, accelerator.resource)
    limits = [most(policies, Measure(What.GPUS, kind)) for kind in kinds]
    servers = most(policies, Measure(What.GPU_SERVERS))
    counts = tuple(
        count
        for count in accelerator.counts
        if all(limit is None or count * weight <= limit for limit in limits)
    )
    if not counts or servers == 0:
        return None
    memory, cpu = accelerator.memory_choices, accelerator.cpu_choices
    return replace(
        accelerator,
        counts=counts,
        memory_choices=None if memory is None else _memory(memory, policies, sizes),
        cpu_choices=None if cpu is None else _cpu(cpu, policies, sizes),
    )


def _memory(
    choices: tuple[Memory, ...], policies: tuple[Policy, ...], sizes: Sizes
) -> tuple[Memory, ...]:
    limit = most(policies, Measure(What.MEMORY))
    return tuple(it for it in choices if limit is None or part(it.bytes, sizes.memory) <= limit)


def _cpu(choices: tuple[int, ...], policies: tuple[Policy, ...], sizes: Sizes) -> tuple[int, ...]:
    limit = most(policies, Measure(What.CPU))
    return tuple(it for it in choices if limit is None or part(it, sizes.cpu) <= limit)


def part(amount: int, part: float) -> int:
    """What a pod requests of an amount, as `manifest` writes it."""
    return math.ceil(amount * Fraction(str(part)))

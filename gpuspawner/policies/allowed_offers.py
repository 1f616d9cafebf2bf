"""What the policies leave of the offers to one user, whatever is in use."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from types import MappingProxyType

import msgspec

from gpuspawner.offers.manifest import part_of
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import Memory
from gpuspawner.offers.types import Accelerator, Default, UnlistedMemory
from gpuspawner.policies.policies import Amount, Measure, Policy, What


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
    """Return the offers without those that no server of this user may have at any time.

    A policy never chooses: a hub without a default accelerator keeps none. If nothing is left of
    what a server without a GPU can choose, that stays on offer, and the policies deny it: without
    it, such a server would get KubeSpawner's own image, memory and CPU instead.
    """
    ruled = tuple(policies)
    if not ruled:
        return offers
    all_images = all(policy.images is None for policy in ruled)
    images = {
        key: it
        for key, it in offers.images.items()
        if all(policy.images is None or key in policy.images for policy in ruled)
    }
    left = replace(
        offers,
        images=MappingProxyType(images),
        memory_choices=_memory(offers.memory_choices, ruled, sizes),
        cpu_choices=_cpu(offers.cpu_choices, ruled, sizes),
        unlisted_image=offers.unlisted_image if all_images else None,
        unlisted_memory=_unlisted(offers.unlisted_memory, ruled, sizes),
    )
    narrowed = (_accelerator(it, ruled, sizes) for it in offers.accelerators.values())
    whole = [it for one in narrowed if one and (it := _whole(one, left, offers))]
    if not any(it.suits(None) for it in images.values()):
        images |= {
            key: msgspec.structs.replace(it, accelerators=frozenset({None}))
            for key, it in offers.images.items()
            if it.suits(None)
        }
    hub = replace(
        left,
        images=MappingProxyType(images),
        memory_choices=left.memory_choices or offers.memory_choices,
        cpu_choices=left.cpu_choices or offers.cpu_choices,
    )
    accelerators = {it.key: _with_default(it, hub) for it in whole}
    default = offers.default_accelerator
    if default is not None and default not in accelerators:
        default = next(iter(accelerators), None)
    return replace(hub, accelerators=MappingProxyType(accelerators), default_accelerator=default)


def _whole(narrowed: Accelerator, left: Offers, offers: Offers) -> Accelerator | None:
    """Return an accelerator, unless nothing is left of an option that the hub offers with it.

    If its list has no memory left, it lists the smallest size to be entered. Nobody would get
    KubeSpawner's own memory, nor that of the hub's list, which policies deny.
    """
    before, after = offers.choices(offers.accelerators[narrowed.key]), left.choices(narrowed)
    options = (before.images, after.images), (before.memory, after.sizes), (before.cpu, after.cpu)
    if any(offered and not kept for offered, kept in options):
        return None
    if after.memory or not before.memory:
        return narrowed
    return replace(narrowed, memory_choices=after.sizes[:1])


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


def leaves_no_gpu(offers: Offers, policies: Sequence[Policy], sizes: Sizes) -> bool:
    """Whether policies leave no accelerator, nor any that the hub could discover, to a user.

    Nobody knows the resource of a model that no node has yet, so it counts as little as any does.
    An image may be only for some models.
    """
    named = {key for it in offers.images.values() for key in it.accelerators or () if key}
    keys = common(it.accelerators for it in policies)
    models = [Accelerator(it, it, resource="") for it in ({"", *named} if keys is None else keys)]
    least = {"": min((1, *sizes.weights.values()))}
    weighed = msgspec.structs.replace(sizes, weights=least)
    return not narrow(offers.with_accelerators(models), policies, weighed).accelerators


def common(lists: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    """Return what all of these lists have; None stands for all there is."""
    left = [it for it in lists if it is not None]
    return frozenset.intersection(*left) if left else None


def shown_withheld(
    offers: Offers, policies: Iterable[Policy], sizes: Sizes
) -> Iterator[tuple[Accelerator, Policy]]:
    """Yield the accelerators that policies withhold and yet show, each with one such policy."""
    ruled = [(it, narrow(offers, (it,), sizes)) for it in policies if it.shows_withheld]
    for accelerator in offers.accelerators.values():
        for policy, left in ruled:
            if accelerator.key not in left.accelerators:
                yield accelerator, policy
                break


def most(policies: Iterable[Policy], measure: Measure) -> Amount | float:
    """Return the most of this that one server may have; infinite for no limit.

    A limit on several servers together is one on each of them, too.
    """
    limits = (it.most for policy in policies for it in policy.limits if it.measure == measure)
    return min(limits, default=inf)


def _accelerator(
    accelerator: Accelerator, policies: tuple[Policy, ...], sizes: Sizes
) -> Accelerator | None:
    if any(
        it.accelerators is not None and accelerator.key not in it.accelerators for it in policies
    ):
        return None
    weight = sizes.weights.get(accelerator.resource, 1)
    kinds = ("", accelerator.key, accelerator.resource)
    limit = min(most(policies, Measure(What.GPUS, kind)) for kind in kinds)
    counts = tuple(count for count in accelerator.counts if count * weight <= limit)
    if not counts or most(policies, Measure(What.GPU_SERVERS)) == 0:
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
    return tuple(it for it in choices if part_of(it.bytes, sizes.memory) <= limit)


def _unlisted(
    unlisted: UnlistedMemory | None, policies: tuple[Policy, ...], sizes: Sizes
) -> UnlistedMemory | None:
    left = _memory(unlisted.sizes, policies, sizes) if unlisted else ()
    return msgspec.structs.replace(unlisted, sizes=left) if unlisted and left else None


def _cpu(choices: tuple[int, ...], policies: tuple[Policy, ...], sizes: Sizes) -> tuple[int, ...]:
    limit = most(policies, Measure(What.CPU))
    return tuple(it for it in choices if part_of(it, sizes.cpu) <= limit)

"""Finds alternatives to a refused request; each is judged just as the request was."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby, islice
from typing import Protocol

import msgspec
from msgspec.structs import replace

from gpuspawner.kube.objects import Manifest
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import in_cores
from gpuspawner.offers.types import Accelerator
from gpuspawner.offers.user_options import GPURequest
from gpuspawner.preflight.decision import Alternative, Difference

MOST = 3
# The hub makes a refusal in one tick, and one evaluation may take a millisecond.
_MOST_JUDGED = 32
# How many further variants may be judged to find one that needs no download.
_MOST_EQUAL = 4
# In GB: more than any slice has.
_WHOLE = 10_000


class Variant(msgspec.Struct, frozen=True):
    """Another request, and how it differs from the one that doesn't fit."""

    request: GPURequest
    differences: tuple[Difference, ...]


class Variants(Protocol):
    """The other requests that policy allows this user."""

    @property
    def offers(self) -> Offers:
        """What is offered."""

    def variant(self, request: GPURequest) -> tuple[Grant, Manifest] | None:
        """The grant and the pod for another request; None if the user can't have it."""


Fitting = Callable[[Variant], Alternative | None]
"""Returns a variant as an alternative if policy grants it and it fits now, else None."""


def nearest(grant: Grant, offers: Offers, fitting: Fitting) -> tuple[Alternative, ...]:
    """Return at most three variants that fit now, nearest first.

    The search has these steps, and takes from each the variant that gives up least: fewer GPUs of
    the same model; less memory or CPU with the same GPUs; both, if neither step found anything;
    another model; no GPU. Other models with as many GPUs come before those with fewer. Among each,
    models of the same kind (whole GPUs, slices, or shared GPUs) come first, and slices by how near
    their size is; otherwise in the form's order, shared GPUs before slices. If several models are
    alike in all of this, the first is one that needs no download on a node where it fits.
    """
    judged = _at_most(_MOST_JUDGED, fitting)
    asked = request_for(grant, offers)
    smaller = list(_smaller(asked, grant, offers))
    found = [*_first(_fewer(Variant(asked, ()), grant), judged), *_first(smaller, judged)]
    if not found:
        both = (fewer for variant in smaller for fewer in _fewer(variant, grant))
        found += _first(both, judged)
    found += _first_at_hand(_others(asked, grant, offers), partial(_gives, offers), judged)
    found += _first(_without_gpu(asked, grant, offers), judged)
    return tuple(found[:MOST])


def _at_most(most: int, fitting: Fitting) -> Fitting:
    left = iter(range(most))
    return lambda variant: fitting(variant) if next(left, None) is not None else None


def _first(variants: Iterable[Variant], fitting: Fitting) -> list[Alternative]:
    fits = (alternative for variant in variants if (alternative := fitting(variant)) is not None)
    return list(islice(fits, 1))


def _first_at_hand(
    variants: Iterable[Variant], gives: Callable[[Variant], object], fitting: Fitting
) -> list[Alternative]:
    """As `_first`, but prefer one at hand to those before it that give as much."""
    for _, group in groupby(variants, gives):
        equal = iter(group)
        for first in _first(equal, fitting):
            others = () if first.is_at_hand else map(fitting, islice(equal, _MOST_EQUAL))
            return [next((it for it in others if it is not None and it.is_at_hand), first)]
    return []


def _gives(offers: Offers, variant: Variant) -> object:
    """Return what a variant gives, whatever its model is called."""
    model = offers.accelerators[variant.request.accelerator or ""]
    kind = model.is_slice, model.is_shared, model.slice_memory
    return replace(variant.request, accelerator=None, image=None), kind


def request_for(grant: Grant, offers: Offers) -> GPURequest:
    """Return the request that leads to this grant, with the offers' keys and texts.

    If they don't have its memory, because a limit leaves less, they don't grant the request.
    """
    choices = offers.choices(grant.accelerator)
    gone = None if grant.memory is None else str(grant.memory)
    return GPURequest(
        accelerator=grant.accelerator.key if grant.accelerator else None,
        gpus=grant.gpus,
        image=grant.image.key if grant.image else None,
        memory=next((m.text for m in choices.sizes if m.bytes == grant.memory), gone),
        cpu=_cores(grant.cpu),
    )


def _counts_below(gpus: int, accelerator: Accelerator | None) -> list[int]:
    counts = accelerator.counts if accelerator else ()
    return sorted((count for count in counts if count < gpus), reverse=True)


def _fewer(variant: Variant, grant: Grant) -> Iterator[Variant]:
    for count in _counts_below(grant.gpus, grant.accelerator):
        request = replace(variant.request, gpus=count)
        yield Variant(request, (Difference.FEWER_GPUS, *variant.differences))


def _smaller(asked: GPURequest, grant: Grant, offers: Offers) -> Iterator[Variant]:
    choices = offers.choices(grant.accelerator)
    sizes = sorted(choices.memory, key=lambda memory: memory.bytes, reverse=True)
    for size in (s for s in sizes if grant.memory is not None and s.bytes < grant.memory):
        yield Variant(replace(asked, memory=size.text), (Difference.LESS_MEMORY,))
    for cpu in sorted(choices.cpu, reverse=True):
        if grant.cpu is not None and cpu < grant.cpu:
            yield Variant(replace(asked, cpu=_cores(cpu)), (Difference.LESS_CPU,))


def _others(asked: GPURequest, grant: Grant, offers: Offers) -> Iterator[Variant]:
    """Other models: first with as many GPUs, then with fewer."""
    if grant.accelerator is None:
        return
    listed = (a for a in offers.accelerators.values() if a.key != grant.accelerator.key)
    others = sorted(listed, key=partial(_unlike, grant.accelerator))
    for accelerator in (a for a in others if asked.gpus in a.counts):
        moved = _moved(asked, accelerator, asked.gpus, grant, offers)
        yield Variant(moved, (Difference.OTHER_ACCELERATOR,))
    for accelerator in others:
        for count in _counts_below(asked.gpus, accelerator):
            moved = _moved(asked, accelerator, count, grant, offers)
            yield Variant(moved, (Difference.OTHER_ACCELERATOR, Difference.FEWER_GPUS))


def _unlike(asked: Accelerator, other: Accelerator) -> tuple[bool, int]:
    """Return how unlike another model is, as a key to sort by."""
    is_another_kind = (other.is_slice, other.is_shared) != (asked.is_slice, asked.is_shared)
    return is_another_kind, abs(_size(asked) - _size(other))


def _size(accelerator: Accelerator) -> int:
    """Return the GB of memory of a slice; whole GPUs all count as one size, which is larger."""
    return accelerator.slice_memory or 0 if accelerator.is_slice else _WHOLE


def _without_gpu(asked: GPURequest, grant: Grant, offers: Offers) -> Iterator[Variant]:
    if grant.accelerator is not None:
        yield Variant(_moved(asked, None, 0, grant, offers), (Difference.NO_GPU,))


def _moved(
    asked: GPURequest, accelerator: Accelerator | None, gpus: int, grant: Grant, offers: Offers
) -> GPURequest:
    """Move the request to another accelerator; a choice it doesn't offer becomes its default."""
    choices = offers.choices(accelerator)
    default = choices.default
    sizes = {memory.text for memory in choices.sizes}
    usual = default.memory.text if default.memory else None
    return GPURequest(
        accelerator=accelerator.key if accelerator else None,
        gpus=gpus,
        image=asked.image if choices.image(asked.image or "") else default.image,
        memory=asked.memory if asked.memory in sizes else usual,
        cpu=asked.cpu if grant.cpu in choices.cpu else _cores(default.cpu),
    )


def _cores(millicores: int | None) -> int | float | None:
    return None if millicores is None else in_cores(millicores)

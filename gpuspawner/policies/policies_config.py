"""Reads the traits `policies` and `gpu_weights`, strictly."""

import re
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from msgspec import Meta

from gpuspawner.kube.meta import Quantity
from gpuspawner.kube.quantity import QuantityError, parse_quantity
from gpuspawner.kube.quoting import quote
from gpuspawner.offers import texts
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import MOST, OfferError, Shape, Some, Text, keyed, offered_key, read
from gpuspawner.policies.charges import counts_as_gpu
from gpuspawner.policies.owner import Names, People
from gpuspawner.policies.policies import (
    Amount,
    Hours,
    Limit,
    Measure,
    Per,
    Policies,
    Policy,
    What,
    names_resource,
)
from gpuspawner.reservations.granted import WhenIdle

_Resource = Annotated[str, Meta(pattern=texts.RESOURCE)]
_Servers = Annotated[int, Meta(ge=0, le=MOST)]
_Keeps = Annotated[int, Meta(ge=0, le=1000)]
_IDLE_TIMES = ("after", "after_if_others_wait", "warning", "kept")
_LIFETIME = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,4})h)?(?:(\d{1,4})m)?")
_MINUTES = (24 * 60, 60, 1)
ALL = "all"
"""The key for all GPUs in a limit by accelerator."""


class WrittenPeople(Shape, frozen=True):
    """Keys that name people."""

    users: Some[Text] | None = None
    groups: Some[Text] | None = None
    roles: Some[Text] | None = None

    def people(self) -> People:
        """Return these people."""
        return People(*(Names.of(it or ()) for it in (self.users, self.groups, self.roles)))


class WrittenException(WrittenPeople, frozen=True):
    """The key `except` of a policy."""

    servers: Some[str] | None = None


class WrittenIdle(Shape, frozen=True):
    """The key `idle` of a policy."""

    after: Text | None = None
    after_if_others_wait: Text | None = None
    warning: Text = "10m"
    keeps: _Keeps = 2
    kept: Text | None = None


class WrittenPolicy(WrittenPeople, frozen=True):
    """An entry of `policies`. Each `Any` has its own shape."""

    servers: Some[str] | None = None
    excepted: Any = msgspec.field(default=None, name="except")
    hours: Some[Text] | None = None
    timezone: Text = "UTC"
    accelerators: tuple[Text, ...] | None = None
    profiles: tuple[Text, ...] | None = None
    images: tuple[Text, ...] | None = None
    gpus_per_server: Any = None
    gpus_per_user: Any = None
    gpus_per_group: Any = None
    memory_per_server: Quantity | None = None
    memory_per_user: Quantity | None = None
    memory_per_group: Quantity | None = None
    cpu_per_server: Quantity | None = None
    cpu_per_user: Quantity | None = None
    cpu_per_group: Quantity | None = None
    gpu_servers_per_user: _Servers | None = None
    gpu_servers_per_group: _Servers | None = None
    lifetime: Text | None = None
    idle: Any = None
    explanation: Text = ""
    show_withheld: bool = False


def read_policies(policies: object, weights: Mapping[str, Amount], offers: Offers) -> Policies:
    """Read the policies of a hub with these offers, and these weights of GPUs.

    Raises:
        OfferError: A policy isn't valid; the text names the trait, the policy and the key.
    """
    written = keyed(policies, WrittenPolicy, "policies")
    found = (_policy(name, it, offers, weights) for name, it in sorted(written.items()))
    return Policies(tuple(found))


def read_weights(weights: object) -> Mapping[str, Amount]:
    """Read the trait `gpu_weights`.

    Raises:
        OfferError: A weight isn't valid.
    """
    return MappingProxyType(dict(_weights(weights)))


def _policy(
    name: str, written: WrittenPolicy, offers: Offers, weights: Mapping[str, Amount]
) -> Policy:
    place = f"policies[{quote(name)}]"
    but = {} if written.excepted is None else written.excepted
    excepted = read(but, WrittenException, f"{place}.except")
    return Policy(
        name=name,
        people=written.people(),
        excepted=excepted.people(),
        servers=None if written.servers is None else Names.of(written.servers),
        excepted_servers=Names.of(excepted.servers or ()),
        hours=tuple(_hours(written, place)),
        accelerators=_known(written.accelerators, offers.accelerators, f"{place}.accelerators"),
        profiles=None if written.profiles is None else frozenset(written.profiles),
        images=_images(written, offers, f"{place}.images"),
        limits=tuple(_limits(written, place, offers, weights)),
        lifetime=_seconds(written.lifetime, f"{place}.lifetime"),
        idle=None if written.idle is None else _idle(written.idle, f"{place}.idle"),
        explanation=written.explanation,
        shows_withheld=written.show_withheld,
    )


def _hours(written: WrittenPolicy, place: str) -> Iterator[Hours]:
    try:
        zone = ZoneInfo(written.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        reason = f"{quote(written.timezone)} is not a time zone, such as Europe/Berlin"
        raise OfferError(f"{place}.timezone", reason) from None
    for index, text in enumerate(written.hours or ()):
        try:
            yield Hours.parse(text, zone)
        except ValueError:
            reason = f"{quote(text)} is not days and hours, such as Mon-Fri 08:00-18:00"
            raise OfferError(f"{place}.hours[{index}]", reason) from None


def _known(
    names: tuple[str, ...] | None, offered: Collection[str], place: str
) -> frozenset[str] | None:
    """Return the keys as the offers write them."""
    if names is None:
        return None
    return frozenset(offered_key(it, offered, f"{place}[{n}]") for n, it in enumerate(names))


def _images(written: WrittenPolicy, offers: Offers, place: str) -> frozenset[str] | None:
    if written.images and not (offers.images or offers.unlisted_image):
        raise OfferError(place, "there is nothing to choose from: GPUSpawner.images is empty")
    if written.images and not offers.images:  # references, which users enter
        return frozenset(written.images)
    return _known(written.images, offers.images, place)


def _limits(
    written: WrittenPolicy, place: str, offers: Offers, weights: Mapping[str, Amount]
) -> Iterator[Limit]:
    for per in Per:
        for what in What:
            key = f"{what}_per_{per}"
            most = getattr(written, key, None)
            if most is None:
                continue
            if per is Per.GROUP and not written.groups:
                raise OfferError(f"{place}.{key}", "needs 'groups': each has this much together")
            by_kind = most if isinstance(most, Mapping) else {ALL: most}
            for of, part in by_kind.items():
                here = f"{place}.{key}[{quote(of)}]" if by_kind is most else f"{place}.{key}"
                measure = Measure(what, _kind(of, offers, weights, here))
                yield Limit(per, measure, _amount(what, part, here))


def _kind(of: str, offers: Offers, weights: Mapping[str, Amount], place: str) -> str:
    """Return what a limit counts: a resource, an accelerator, or "" for all GPUs."""
    if of == ALL:
        return ""
    if not names_resource(of):
        return offered_key(of, offers.accelerators, place)
    if not counts_as_gpu(of, offers.accelerators.values(), weights):
        reason = f"{quote(of)} isn't counted; give it a weight in GPUSpawner.gpu_weights"
        raise OfferError(place, reason)
    return of


def _amount(what: What, written: object, place: str) -> Amount:
    """Read GPUs, servers or bytes as a number, and CPU as millicores."""
    try:
        amount = parse_quantity(str(written)) * (1000 if what is What.CPU else 1)
    except (QuantityError, ValueError):
        reason = f"{quote(written)} is not an amount; write it as Kubernetes does, such as 2 or 8Gi"
        raise OfferError(place, reason) from None
    if amount < 0:
        raise OfferError(place, f"{quote(written)} is less than 0")
    return whole(amount)


def whole(amount: Fraction) -> Amount:
    """Return an amount as an int if it is one, because sums of ints are fast."""
    return int(amount) if amount.denominator == 1 else amount


def _seconds(written: str | None, place: str) -> int | None:
    if written is None:
        return None
    found = _LIFETIME.fullmatch(written)
    parts = [int(part or 0) for part in found.groups()] if found else []
    minutes = sum(part * unit for part, unit in zip(parts, _MINUTES, strict=False))
    if minutes == 0:
        reason = f"{quote(written)} is not a time such as 90m, 8h or 2d12h"
        raise OfferError(place, reason)
    return 60 * minutes


def _idle(given: object, place: str) -> WhenIdle:
    written = read(given, WrittenIdle, place)
    times = {it: _seconds(getattr(written, it), f"{place}.{it}") for it in _IDLE_TIMES}
    after = times["after"]
    if after is None:
        raise OfferError(f"{place}.after", "is missing; write a time such as 1h")
    others = times["after_if_others_wait"] or after
    if others > after:
        raise OfferError(f"{place}.after_if_others_wait", "is longer than 'after'")
    return WhenIdle(after, others, times["warning"] or 0, written.keeps, times["kept"] or after)


def _weights(value: object) -> Iterator[tuple[str, Amount]]:
    """Read how much of a GPU a device of each resource is; `1/7` is exact."""
    for resource, written in read(value, dict[str, Any], "gpu_weights").items():
        if written is None:
            continue
        place = f"gpu_weights[{quote(read(resource, _Resource, 'gpu_weights'))}]"
        try:
            weight = Fraction(str(written))
        except (ValueError, ZeroDivisionError):
            reason = f"{quote(written)} is not a number such as 0.5 or 1/7"
            raise OfferError(place, reason) from None
        if weight < 0:
            raise OfferError(place, f"{quote(written)} is less than 0")
        yield resource, whole(weight)

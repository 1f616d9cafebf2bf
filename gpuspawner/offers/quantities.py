"""Reads the amounts in an offer: memory and CPU as Kubernetes writes them."""

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from gpuspawner.kube.quantity import INT64_MAX, parse_quantity
from gpuspawner.offers.errors import OfferError
from gpuspawner.offers.shapes import Quantity, read
from gpuspawner.offers.types import Memory
from gpuspawner.quoting import quote

T = TypeVar("T")


def memory(written: Quantity, place: str) -> Memory:
    """A size of memory, such as `16Gi`; a bare number is bytes."""
    kind = "a size of memory; write it as Kubernetes does, such as 512Mi or 16Gi"
    size = _positive(written, kind, place)
    if size.denominator != 1:
        raise OfferError(place, f"{quote(written)} is not a whole number of bytes")
    return Memory(str(written), int(size))


def millicores(written: Quantity, place: str) -> int:
    """An amount of CPU, such as `2`, `0.5` or `500m`, in millicores."""
    kind = "an amount of CPU; write it as Kubernetes does, such as 2 or 500m"
    amount = _positive(written, kind, place) * 1000
    if amount.denominator != 1:
        raise OfferError(place, f"{quote(written)} is finer than a thousandth of a core")
    return int(amount)


def memory_choices(value: object, place: str) -> tuple[Memory, ...]:
    """Memory sizes, no two of the same amount."""
    return _different(value, memory, lambda size: size.bytes, place)


def cpu_choices(value: object, place: str) -> tuple[int, ...]:
    """Amounts of CPU in millicores, no two the same."""
    return _different(value, millicores, lambda amount: amount, place)


def _different(
    value: object, one: Callable[[Quantity, str], T], amount: Callable[[T], int], place: str
) -> tuple[T, ...]:
    found: dict[int, T] = {}
    for index, written in enumerate(read(value, tuple[Quantity, ...], place)):
        choice = one(written, f"{place}[{index}]")
        if amount(choice) in found:
            raise OfferError(f"{place}[{index}]", f"{quote(written)} is there twice")
        found[amount(choice)] = choice
    return tuple(found.values())


def _positive(written: Quantity, kind: str, place: str) -> Fraction:
    try:
        amount = parse_quantity(str(written))
    except ValueError:  # a QuantityError, or what `str` raises for thousands of digits
        raise OfferError(place, f"{quote(written)} is not {kind}") from None
    if amount <= 0:
        raise OfferError(place, f"{quote(written)} is not more than nothing")
    if amount > INT64_MAX:
        raise OfferError(place, f"{quote(written)} is more than any machine has")
    return amount

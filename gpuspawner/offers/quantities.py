"""Reads the amounts in an offer: memory and CPU as Kubernetes writes them."""

from fractions import Fraction

from gpuspawner.kube.quantity import INT64_MAX, QuantityError, parse_quantity
from gpuspawner.offers.reading import At
from gpuspawner.offers.types import Memory
from gpuspawner.quoting import quote


def memory(at: At) -> Memory:
    """A size of memory, such as `16Gi`; a bare number is bytes."""
    size = _positive(at, "a size of memory; write it as Kubernetes does, such as 512Mi or 16Gi")
    if size.denominator != 1:
        raise at.error(f"{quote(at.value)} is not a whole number of bytes")
    return Memory(str(at.value), int(size))


def millicores(at: At) -> int:
    """An amount of CPU, such as `2`, `0.5` or `500m`, in millicores."""
    amount = _positive(at, "an amount of CPU; write it as Kubernetes does, such as 2 or 500m")
    if (amount * 1000).denominator != 1:
        raise at.error(f"{quote(at.value)} is finer than a thousandth of a core")
    return int(amount * 1000)


def _positive(at: At, kind: str) -> Fraction:
    if not isinstance(at.value, str | int | float) or isinstance(at.value, bool):
        raise at.error(f"{quote(at.value)} is not {kind}")
    try:
        amount = parse_quantity(str(at.value))
    except QuantityError:
        raise at.error(f"{quote(at.value)} is not {kind}") from None
    if amount <= 0:
        raise at.error(f"{quote(at.value)} is not more than nothing")
    if amount > INT64_MAX:
        raise at.error(f"{quote(at.value)} is more than any machine has")
    return amount

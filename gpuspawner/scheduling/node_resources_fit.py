"""Resources: plugin NodeResourcesFit. Source: `fitsRequest` in noderesources/fit.go (v1.36.2).

What is allocatable counts, not capacity; a request of zero always fits, even on a node that is
over-committed.
"""

from collections.abc import Mapping

from .failures import Failures, Insufficient
from .requests import PODS, Amounts

Asked = tuple[tuple[str, int], ...]
"""Resources asked for with more than zero, those of devices first: they fail most often."""


def wanted(amounts: Amounts) -> Asked:
    """Order what a pod asks for so that what fails most often is looked at first."""
    asked = [(resource, amount) for resource, amount in amounts.items() if amount > 0]
    return tuple(sorted(asked, key=lambda item: ("/" not in item[0], item[0])))


def fits(asked: Asked, free: Mapping[str, int]) -> bool:
    """Tell whether there is room, for the pod itself included."""
    if free.get(PODS, 0) < 1:
        return False
    for resource, amount in asked:  # noqa: SIM110 (all() costs twice the time)
        if free.get(resource, 0) < amount:
            return False
    return True


def lacking(asked: Asked, free: Amounts, allocatable: Amounts) -> Failures:
    """Return all that is lacking; empty if nothing is."""
    facts = [
        Insufficient(resource, amount, free.get(resource, 0), allocatable.get(resource, 0))
        for resource, amount in asked
        if free.get(resource, 0) < amount
    ]
    if free.get(PODS, 0) < 1:
        facts.append(Insufficient(PODS, 1, free.get(PODS, 0), allocatable.get(PODS, 0)))
    return tuple(facts)

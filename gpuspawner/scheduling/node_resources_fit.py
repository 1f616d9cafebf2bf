"""Resources: plugin NodeResourcesFit. Source: `fitsRequest` in noderesources/fit.go (v1.36.2).

Allocatable resources count, not capacity. A request of zero always fits, even on an over-committed
node.
"""

from collections.abc import Mapping

from .failures import Failures, Insufficient
from .requests import PODS, Amounts, is_device

Asked = tuple[tuple[str, int], ...]
"""Requested resources above zero, devices first because they fail most often."""


def wanted(amounts: Mapping[str, int]) -> Asked:
    """Order a pod's requests: first what fails most often."""
    asked = [(resource, amount) for resource, amount in amounts.items() if amount > 0]
    return tuple(sorted(asked, key=lambda item: (not is_device(item[0]), item[0])))


def fits(asked: Asked, free: Mapping[str, int]) -> bool:
    """Return whether the free resources are enough, including one more pod."""
    if free.get(PODS, 0) < 1:
        return False
    for resource, amount in asked:  # noqa: SIM110 (all() costs twice the time)
        if free.get(resource, 0) < amount:
            return False
    return True


def lacking(asked: Asked, free: Amounts, allocatable: Amounts) -> Failures:
    """Return every resource that is insufficient."""
    facts = [
        Insufficient(resource, amount, free.get(resource, 0), allocatable.get(resource, 0))
        for resource, amount in asked
        if free.get(resource, 0) < amount
    ]
    if free.get(PODS, 0) < 1:
        facts.append(Insufficient(PODS, 1, free.get(PODS, 0), allocatable.get(PODS, 0)))
    return tuple(facts)

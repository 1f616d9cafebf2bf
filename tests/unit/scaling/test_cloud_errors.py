"""Why a cloud delivered no machine: a quota is a limit, and a stock-out passes."""

from __future__ import annotations

import pytest

from gpuspawner.scaling.cloud_errors import why_failed
from gpuspawner.scaling.outlook import WhyNoNode
from tests.unit.makers.groups import group, look

REFUSED = WhyNoNode.REFUSED
OTHER = "cloudProviderError"
SAID = {
    "GCE, a quota": ("QUOTA_EXCEEDED", "Quota 'T4' exceeded.  Limit: 1.0", WhyNoNode.QUOTA),
    "GCE, a stock-out": ("RESOURCE_POOL_EXHAUSTED", "the quota isn't it", WhyNoNode.STOCK_OUT),
    "GCE, capacity": ("INSUFFICIENT_CAPACITY", "", WhyNoNode.STOCK_OUT),
    "GCE, addresses": ("IP_SPACE_EXHAUSTED", "", WhyNoNode.LIMIT),
    "GCE, too many calls": ("", "Error 403: Rate Limit Exceeded, rateLimitExceeded", REFUSED),
    "GCE, too many a minute": (OTHER, "Quota exceeded for 'Queries per minute'", REFUSED),
    "GCE, permissions": ("PERMISSIONS_ERROR", "no", WhyNoNode.REFUSED),
    "GCE, a reservation": ("RESERVATION_NOT_FOUND", "no", WhyNoNode.REFUSED),
    "GKE, late": ("", 'Some nodes in node group "g" failed to appear in time', WhyNoNode.IN_VAIN),
    "AWS, a group": ("placeholder-cannot-be-fulfilled", "no", WhyNoNode.STOCK_OUT),
    "AWS, a quota": ("VCPULimitExceeded", "", WhyNoNode.QUOTA),
    "AWS, a spot quota": ("", "MaxSpotInstanceCountExceeded: Max spot", WhyNoNode.QUOTA),
    "AWS, too many calls": ("RequestLimitExceeded", "", WhyNoNode.REFUSED),
    "AWS, addresses": ("InsufficientFreeAddressesInSubnet", "", WhyNoNode.LIMIT),
    "AWS, a stock-out": ("", "InsufficientInstanceCapacity: We have not", WhyNoNode.STOCK_OUT),
    "Azure, a quota": (OTHER, "exceeding approved standardNC Cores quota", WhyNoNode.QUOTA),
    "Azure, Karpenter": ("SubscriptionQuotaReached", "", WhyNoNode.QUOTA),
    "Azure, a zone": ("ZonalAllocationFailure", "", WhyNoNode.STOCK_OUT),
    "Azure, a size": ("SKUNotAvailable", "", WhyNoNode.STOCK_OUT),
    "Azure, who knows": ("provisioning-state-failed", "Azure failed to", WhyNoNode.REFUSED),
    "OCI, a quota": (OTHER, "LimitExceeded: gpu-count", WhyNoNode.QUOTA),
    "OCI, a stock-out": (OTHER, "Out of host capacity.", WhyNoNode.STOCK_OUT),
    "Hetzner, a quota": (OTHER, "limit (resource_limit_exceeded)", WhyNoNode.QUOTA),
    "Hetzner, too many calls": (OTHER, "(rate_limit_exceeded)", WhyNoNode.REFUSED),
    "no node joined": ("timeout", "", WhyNoNode.IN_VAIN),
    "nothing is said": ("", "", WhyNoNode.STOCK_OUT),
}


@pytest.mark.parametrize(("code", "text", "why"), SAID.values(), ids=SAID)
def test_a_quota_a_stock_out_and_other_failures_are_told_apart(code, text, why) -> None:
    assert why_failed(code, text) is why


@pytest.mark.parametrize(
    ("code", "why"),
    [("OUT_OF_RESOURCES", WhyNoNode.STOCK_OUT), ("QUOTA_EXCEEDED", WhyNoNode.QUOTA)],
)
def test_a_group_that_backs_off_adds_none_and_says_why(code, why) -> None:
    backs_off = group(scale_up="Backoff").replace("OUT_OF_RESOURCES", code)

    [obstacle] = look(backs_off).obstacles

    assert (obstacle.why, obstacle.detail) == (why, code)

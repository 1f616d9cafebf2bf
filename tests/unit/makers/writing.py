"""What tests write as policies, and the offers that these are about."""

from __future__ import annotations

from typing import Any

import pytest

from gpuspawner.offers.offers import Offers
from gpuspawner.offers.shapes import OfferError
from gpuspawner.policies.policies import Limit, Measure, Per, Policy, What
from gpuspawner.policies.policies_config import read_policies, read_weights

OFFERS = Offers.parse(
    accelerators={
        "A100_80": {"node_selector": {"gpu": "a100"}},
        "t4": {"node_selector": {"gpu": "t4"}, "resource": "example.com/t4"},
    },
    images={"pytorch": {"image": "pytorch:1"}, "r": {"image": "r:1"}},
)
MIG = "nvidia.com/mig-1g.5gb"
GIB = 2**30
EVERY_KEY = {
    "users": ["ann", "tutor-*"],
    "groups": ["ml-*"],
    "roles": ["admin"],
    "except": {"users": ["bob"], "groups": ["staff"], "roles": ["grader"], "servers": ["exp-0"]},
    "servers": ["", "exp-*"],
    "hours": ["Mon-Fri 08:00-18:00", "Sat"],
    "timezone": "Europe/Berlin",
    "accelerators": ["t4"],
    "profiles": ["large"],
    "images": ["pytorch"],
    "gpus_per_server": 1,
    "gpus_per_user": 2,
    "gpus_per_group": 8,
    "memory_per_server": "16Gi",
    "memory_per_user": "32Gi",
    "memory_per_group": "1Ti",
    "cpu_per_server": 2,
    "cpu_per_user": "2500m",
    "cpu_per_group": 0.5,
    "gpu_servers_per_user": 1,
    "gpu_servers_per_group": 20,
    "lifetime": "8h",
    "idle": {"after": "2h", "after_if_others_wait": "20m"},
    "explanation": "The course shares eight GPUs.",
    "show_withheld": True,
}


def policy(offers: Offers = OFFERS, weights: object = None, **keys: Any) -> Policy:
    [found] = read_policies({"course": keys}, read_weights(weights or {}), offers).policies
    return found


def limits(**keys: Any) -> tuple[Limit, ...]:
    return policy(groups=["ml"], **keys).limits


def gpus(most: Any, of: str = "", per: Per = Per.USER) -> Limit:
    return Limit(per, Measure(What.GPUS, of), most)


def error(weights: object = None, offers: Offers = OFFERS, **keys: Any) -> str:
    with pytest.raises(OfferError) as raised:
        policy(offers, weights, **keys)
    return str(raised.value)

"""Limits on the profiles that KubeSpawner loads into a spawner."""

from collections.abc import Mapping
from typing import Any

from gpuspawner.compat.kubespawner import Stock
from gpuspawner.profiles.profile_list import Complete, read, without_patterns
from gpuspawner.profiles.profile_options import check_written
from gpuspawner.start.host import Host
from gpuspawner.start.refusal import misconfigured
from gpuspawner.traits import OFFERS


def validate_user_options(spawner: Host, stock: Stock, profiles: Complete | None) -> None:
    """Validate as KubeSpawner does, but match written-in values in bounded time.

    Raises:
        ValueError: The options aren't valid.
    """
    stock.validate_user_options(without_patterns(profiles or []))
    if spawner.user_options:
        check_written(spawner.user_options, read(profiles or []))


def apply_overrides(stock: Stock, overrides: Mapping[str, Any]) -> None:
    """Apply the overrides of a profile or group, except offers: these hold for the whole hub.

    Raises:
        Refusal: The overrides set an offer.
    """
    offers = sorted(set(OFFERS).intersection(overrides))
    if offers:
        raise misconfigured(f"GPUSpawner.{offers[0]} can only be set for the whole hub")
    stock.apply_overrides(overrides)

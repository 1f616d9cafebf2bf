"""KubeSpawner loading a profile into a spawner, which gpuspawner keeps within bounds."""

from collections.abc import Mapping
from typing import Any

from gpuspawner.compat.kubespawner import Stock
from gpuspawner.spawn.host import Host
from gpuspawner.spawn.profiles.choosing import check_written
from gpuspawner.spawn.profiles.profile_list import Complete, read, without_patterns
from gpuspawner.spawn.refusal import misconfigured
from gpuspawner.traits import OFFERS


def validate_user_options(spawner: Host, stock: Stock, profiles: Complete | None) -> None:
    """Validate as KubeSpawner does, but match what is written in within bounded time.

    Raises:
        ValueError: KubeSpawner could not load it.
    """
    stock.validate_user_options(without_patterns(profiles or []))
    if spawner.user_options:
        check_written(spawner.user_options, read(profiles or []))


def apply_overrides(stock: Stock, overrides: Mapping[str, Any]) -> None:
    """Apply what a profile or a group sets, which can be no offer: those are the hub's.

    Raises:
        Refusal: It sets one.
    """
    offers = sorted(set(OFFERS).intersection(overrides))
    if offers:
        raise misconfigured(f"GPUSpawner.{offers[0]} can only be set for the whole hub")
    stock.apply_overrides(overrides)

"""Facts as the hub notes them."""

from __future__ import annotations

from typing import Any

from gpuspawner.troubles.facts import Fact, Happened


def fact(happened: str, at: float = 1_000_000.0, user: str = "ann", **what: Any) -> Fact:
    """Make a fact about a server of ann's."""
    return Fact(Happened(happened), at, user, **what)

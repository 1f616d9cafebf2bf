"""What goes wrong in more than one kind of race."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from tests.hub.running import RunningHub
from tests.servers.cutting_proxy import CuttingProxy


class HasProxy(Protocol):
    """A stage whose hub talks to the API server through a proxy."""

    proxy: CuttingProxy


@contextmanager
def cutting(stage: HasProxy, dice: random.Random) -> Iterator[None]:
    """Cut the hub's watches at random."""
    before = stage.proxy.cuts
    with stage.proxy.cutting_idle(dice):
        yield
    assert stage.proxy.cuts > before


def restart(hub: RunningHub, end: Callable[[], None]) -> None:
    """End the hub, by request or by force, and start it again."""
    end()
    hub.begin()
    hub.until_it_serves()

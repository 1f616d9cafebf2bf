"""A hub for the tests of this folder."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gpuspawner import GPUSpawner
from tests.unit.spawn.courses import NODES, Course
from tests.unit.spawn.hubs import StillHub
from tests.unit.spawn.restarts import NODE, restarting
from tests.unit.spawn.waiters import FULL, Waiting


@pytest.fixture
def hub_with(monkeypatch: pytest.MonkeyPatch) -> Callable[..., StillHub]:
    """Return a function that makes a hub on a cluster with the given objects."""
    return partial(StillHub, monkeypatch)


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the event loop itself do what is for threads: the virtual clock doesn't wait for them."""

    async def at_once(call: Callable[..., Any], *arguments: object) -> Any:
        return call(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", at_once)


@pytest.fixture
def after_restart(hub_with: Callable[..., StillHub]) -> Callable[..., GPUSpawner]:
    """As `restarting`."""
    return restarting(hub_with(NODE))


@pytest.fixture
def course(hub_with: Callable[..., StillHub]) -> Course:
    return Course(hub_with(*NODES))


@pytest.fixture
async def waiting(hub_with: Callable[..., StillHub]) -> Callable[..., Any]:
    """Return a function that lets Alice join the line."""

    async def begin(wish: object = True) -> Waiting:
        made = Waiting(hub_with(*FULL), wish)
        await made.begin()
        assert made.place.is_on
        return made

    return begin

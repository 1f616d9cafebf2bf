"""What tests of several rooms share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from gpuspawner import GPUSpawner
from tests.unit.makers.clocks import VirtualClock
from tests.unit.makers.courses import NODES, Course
from tests.unit.makers.hubs import StillHub
from tests.unit.makers.line_stage import FULL as BUSY
from tests.unit.makers.line_stage import Stage
from tests.unit.makers.restarts import NODE, restarting
from tests.unit.makers.waiters import FULL, Waiting


@pytest.fixture(scope="package", autouse=True)
def no_certificate_authorities() -> Iterator[None]:
    """Spare each client the reading of the machine's certificate authorities, which takes 90 ms.

    No test of this folder speaks to a server that has a certificate of theirs.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", os.devnull)
        patch.setenv("SSL_CERT_DIR", os.devnull)
        yield


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    """Let each wait take no time, and exactly as long as it should.

    It is for tests without sockets, processes and threads: the clock doesn't wait for them.
    """
    return VirtualClock(monkeypatch)


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
def restart(hub_with: Callable[..., StillHub]) -> Callable[..., GPUSpawner]:
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


@pytest.fixture
def stage() -> Stage:
    """A node whose two GPUs are in use."""
    return Stage(*BUSY)

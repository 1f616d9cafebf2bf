"""Of the requests for one server, one goes on; tests/hub/test_refusals.py has it in a hub."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from gpuspawner.spawn import drafts, one_request
from gpuspawner.spawn.one_request import AlreadyStartedError
from gpuspawner.spawn.refusal import Refusal, reporting
from tests.unit.spawn.hubs import StillHub


async def test_of_requests_that_pass_the_gate_together_one_goes_on(
    hub_with: Callable[..., StillHub],
) -> None:
    spawner = hub_with().spawner()
    end = asyncio.Event()

    async def request() -> None:
        drafts.keep({})
        one_request.go_on(spawner)
        await end.wait()

    first = asyncio.create_task(request())
    second = asyncio.create_task(request())
    with pytest.raises(Refusal, match="started already"):
        await second

    end.set()
    await first
    await asyncio.create_task(request())


async def test_a_request_comes_too_late_for_a_server_that_is_starting(
    hub_with: Callable[..., StillHub],
) -> None:
    spawner = hub_with().spawner()
    one_request.check(spawner)

    spawner._spawn_pending = True

    with pytest.raises(AlreadyStartedError):
        one_request.check(spawner)


async def test_a_request_that_comes_too_late_is_no_refusal_of_the_server(
    hub_with: Callable[..., StillHub], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    draft = drafts.keep({})

    with pytest.raises(AlreadyStartedError), reporting(hub_with().spawner()):
        raise AlreadyStartedError

    assert caplog.messages == []
    assert draft.refused is None

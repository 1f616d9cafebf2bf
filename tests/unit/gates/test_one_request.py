"""Only one request starts a server; tests/hub/gates/test_gates.py tests this in a hub."""

import asyncio
import logging

import pytest

from gpuspawner.gates import drafts, one_request
from gpuspawner.gates.one_request import AlreadyStartedError
from gpuspawner.gates.refusal import Refusal, reporting

pytestmark = pytest.mark.each_python


async def test_only_one_of_several_concurrent_requests_starts_the_server(hub_with) -> None:
    spawner = hub_with().spawner()
    end = asyncio.Event()

    async def request() -> None:
        drafts.keep({})
        one_request.go_on(spawner)
        await end.wait()

    first = asyncio.create_task(request())
    second = asyncio.create_task(request())
    with pytest.raises(Refusal, match="already starting"):
        await second

    end.set()
    await first
    await asyncio.create_task(request())


async def test_a_request_is_too_late_for_a_server_that_is_starting(hub_with) -> None:
    spawner = hub_with().spawner()
    one_request.check(spawner)

    spawner._spawn_pending = True

    with pytest.raises(AlreadyStartedError):
        one_request.check(spawner)


async def test_a_request_that_is_too_late_is_not_reported_as_a_refusal(hub_with, caplog) -> None:
    caplog.set_level(logging.INFO)
    draft = drafts.keep({})

    with pytest.raises(AlreadyStartedError), reporting(hub_with().spawner()):
        raise AlreadyStartedError

    assert caplog.messages == []
    assert draft.refused is None

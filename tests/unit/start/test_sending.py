"""What the hub's log says of a pod that may be left behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from gpuspawner.start.sending import Sending
from tests.unit.makers.worlds import NAMESPACE, no_promises

KEY = (NAMESPACE, "jupyter-ann")


Delete = Callable[..., Awaitable[bool]]


def sending_with(delete: Delete) -> Sending:
    async def sent(*_: Any) -> bool:
        return True

    stock = SimpleNamespace(create_pod=sent, delete_pod=delete, stops_pod=lambda: False)
    spawner = SimpleNamespace(
        namespace=NAMESPACE,
        pod_name=KEY[1],
        log=logging.getLogger("hub"),
        gpuspawner_stock=stock,
    )
    return Sending(spawner, no_promises())


async def lose(delete: Delete, caplog: pytest.LogCaptureFixture) -> tuple[bool, list[str]]:
    """Cancel a start whose pod is sent.

    Returns whether the pod may still exist, and the levels of what the log says of it.
    """
    sending = sending_with(delete)

    async def start() -> None:
        await sending.send(KEY, None, 3)
        await asyncio.sleep(3600)

    with caplog.at_level(logging.INFO, "hub"):
        task = asyncio.create_task(sending.hold(KEY, start(), asyncio.sleep(3600)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    return sending.may_exist, said_in(caplog)


def said_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [it.levelname for it in caplog.records if "jupyter-ann" in it.message]


def asking(session: aiohttp.ClientSession) -> Delete:
    """Ask at an address where nobody answers."""

    async def delete(*_: Any) -> bool:
        async with session.delete("http://127.0.0.1:9/") as answer:
            return answer.ok

    return delete


async def test_a_hub_that_ends_during_a_start_does_not_warn_of_its_own_end(caplog) -> None:
    session = aiohttp.ClientSession()
    await session.close()

    assert await lose(asking(session), caplog) == (True, ["INFO"])


async def test_a_pod_of_which_nobody_knows_is_warned_of(caplog) -> None:
    async with aiohttp.ClientSession() as session:
        assert await lose(asking(session), caplog) == (True, ["WARNING"])


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("answers", "said"),
    [(chain([False, False], repeat(True)), []), (repeat(False), ["WARNING"])],
    ids=["it comes back", "it stays away"],
)
async def test_an_api_server_that_does_not_answer_is_asked_again(caplog, answers, said) -> None:
    async def delete(*_: Any) -> bool:
        return next(answers)

    sending = sending_with(delete)

    async def start() -> None:
        await sending.send(KEY, None, 3)
        raise EOFError

    began = asyncio.get_running_loop().time()
    with pytest.raises(EOFError):
        await sending.hold(KEY, start(), asyncio.sleep(3600))
    assert said_in(caplog) == said
    assert asyncio.get_running_loop().time() - began <= 10


@pytest.mark.usefixtures("clock")
async def test_a_cancelled_start_asks_only_once_since_the_next_one_has_a_pod_of_that_name(
    caplog,
) -> None:
    """The hub waits for a second, and tells the owner then that it can't stop the server."""
    asked: list[float] = []

    async def delete(*_: Any) -> bool:
        asked.append(asyncio.get_running_loop().time())
        return False

    assert await lose(delete, caplog) == (True, ["WARNING"])
    await asyncio.sleep(60)
    assert len(asked) == 1

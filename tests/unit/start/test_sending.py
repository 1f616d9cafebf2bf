"""What the hub's log says of a pod that may be left behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from gpuspawner.start.sending import Sending
from tests.unit.makers.worlds import NAMESPACE, no_promises

KEY = (NAMESPACE, "jupyter-ann")


async def lose(
    delete: Callable[..., Awaitable[bool]], caplog: pytest.LogCaptureFixture
) -> tuple[bool, list[str]]:
    """Cancel a start whose pod is sent.

    Returns whether the pod may still exist, and the levels of what the log says of it.
    """

    async def sent(*_: Any) -> bool:
        return True

    stock = SimpleNamespace(create_pod=sent, delete_pod=delete)
    spawner = SimpleNamespace(
        namespace=NAMESPACE,
        pod_name=KEY[1],
        log=logging.getLogger("hub"),
        gpuspawner_stock=stock,
    )
    sending = Sending(spawner, no_promises())

    async def start() -> None:
        await sending.send(KEY, None, 3)
        await asyncio.sleep(3600)

    with caplog.at_level(logging.INFO, "hub"):
        task = asyncio.create_task(sending.hold(KEY, start(), asyncio.sleep(3600)))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    levels = [it.levelname for it in caplog.records if "jupyter-ann" in it.message]
    return sending.may_exist, levels


def asking(session: aiohttp.ClientSession) -> Callable[..., Awaitable[bool]]:
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
    ("answers", "outcome"),
    [([False, False, True], (False, [])), ([False] * 99, (True, ["WARNING"]))],
    ids=["it comes back", "it stays away"],
)
async def test_an_api_server_that_does_not_answer_is_asked_again(caplog, answers, outcome) -> None:
    async def delete(*_: Any) -> bool:
        return answers.pop(0)

    assert await lose(delete, caplog) == outcome

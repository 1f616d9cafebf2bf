"""What of gpuspawner.hub needs no hub; tests/hub/test_refusals.py has the rest."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from gpuspawner import hub
from gpuspawner.messages import Message


async def _wait_then(value: str) -> str:
    await asyncio.sleep(0)
    return value


async def _at_once(value: str) -> str:
    return value


async def test_what_need_not_wait_is_done_at_once() -> None:
    assert hub.at_once(partial(_at_once, "done")) == "done"


async def test_what_has_to_wait_is_left_to_whoever_awaits_it() -> None:
    rest = hub.at_once(partial(_wait_then, "done"))

    assert await rest == "done"  # type: ignore[misc]


async def test_what_is_waited_for_may_fail_inside_the_coroutine() -> None:
    failing: asyncio.Future[None] = asyncio.Future()

    async def catches() -> str:
        try:
            await failing
        except ValueError as error:
            return f"caught {error}"
        return "not caught"

    rest = hub.at_once(catches)
    failing.set_exception(ValueError("it"))

    assert await rest == "caught it"  # type: ignore[misc]


async def test_cancelling_the_rest_cancels_the_coroutine() -> None:
    ended = []

    async def tidies() -> None:
        try:
            await asyncio.Future()
        finally:
            ended.append("tidied")

    rest = hub.at_once(tidies)
    ended.clear()
    task = asyncio.ensure_future(rest)  # type: ignore[arg-type]
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == ["tidied"]


async def test_a_time_out_inside_the_coroutine_cancels_nothing_else() -> None:
    async def waits() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Future()
        except TimeoutError:
            return "given up"
        return "waited"

    async def spawn() -> str:
        # The hub makes a task of what a hook returns, and may wait for it in any way.
        hook = asyncio.ensure_future(hub.at_once(waits))  # type: ignore[arg-type]
        await asyncio.wait([hook])
        return hook.result()

    assert await asyncio.create_task(spawn()) == "given up"


def test_an_error_before_any_waiting_is_raised_at_once() -> None:
    async def fails() -> None:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        hub.at_once(fails)


def test_a_draft_is_seen_by_the_tasks_of_its_request_and_by_no_other() -> None:
    async def look() -> hub.Draft | None:
        return hub.draft()

    async def request() -> tuple[hub.Draft | None, hub.Draft]:
        mine = hub.keep_draft({"gpus": ["2"]})
        return await asyncio.create_task(look()), mine

    async def both() -> None:
        (seen, mine), other = await asyncio.gather(
            asyncio.create_task(request()), asyncio.create_task(look())
        )
        assert seen is mine
        assert other is None

    asyncio.run(both())


@pytest.mark.parametrize(
    ("configured", "accepted", "spoken"),
    [("", "de", ["de"]), ("fr", "de", ["fr"]), ("fr", None, ["fr"]), ("", None, [])],
)
def test_what_a_request_has_begun_in_one_language_goes_on_in_it(
    configured: str, accepted: str | None, spoken: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A form that is drawn again comes from a spawner that the hub may have told no handler."""
    heard: list[str] = []
    monkeypatch.setattr(hub.language, "speak", heard.append)
    request = SimpleNamespace(headers={"Accept-Language": accepted})
    handler = SimpleNamespace(request=request) if accepted else None

    hub.speak(SimpleNamespace(language=configured, handler=handler))

    assert heard == spoken


@pytest.fixture
def refusal() -> hub.Refusal:
    return hub.Refusal(Message.of("100 % of the T4s are in use."), reason="busy")


def _is_kept(text: str, *args: object, error: BaseException | None = None) -> bool:
    exc_info = (type(error), error, None) if error else None
    record = logging.makeLogRecord({"msg": text, "args": args, "exc_info": exc_info})
    return bool(hub._no_echo.filter(record))


def test_no_line_of_others_about_a_refusal_is_kept(refusal: hub.Refusal) -> None:
    assert not _is_kept("It failed", error=refusal)
    assert not _is_kept(f"Error starting alice's server: {refusal}")
    assert not _is_kept("Error starting %s's server: %s", "alice", refusal)
    assert not _is_kept("%d %s: %s", 409, "POST /hub/spawn", refusal.get_message())


def test_a_line_that_only_says_the_same_is_kept(refusal: hub.Refusal) -> None:
    assert _is_kept("Not starting %s (%s): %s", "alice", "busy", refusal.text)
    assert _is_kept(refusal.text)


def test_a_line_that_cannot_be_written_raises_nothing_where_it_was_logged(
    refusal: hub.Refusal,
) -> None:
    assert _is_kept("%d of %d", 1), refusal


def test_people_are_told_nothing_but_the_text(refusal: hub.Refusal) -> None:
    assert str(refusal) == refusal.text == refusal.jupyterhub_message
    assert refusal.get_message() == refusal.text


def test_a_server_s_name_makes_no_line_of_its_own_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """JupyterHub 5 takes any name; 6 refuses such names."""
    spawner: Any = SimpleNamespace(
        _log_name="alice:lab\r\n[I] Starting bob\x1b[31m\u2028\u202e",
        _spawn_future=None,
        handler=None,
        log=logging.getLogger("hub"),
    )
    caplog.set_level(logging.INFO)

    hub.refuse(spawner, Message.of("It is in use."), reason="busy")

    [line] = caplog.messages
    assert line == "Not starting alice:lab [I] Starting bob [31m (busy): It is in use."


def _idle_spawner() -> Any:
    spawner = SimpleNamespace(name="", active=False)
    spawner.user = SimpleNamespace(name="alice", spawners={"": spawner})
    return spawner


async def test_of_requests_that_pass_the_gate_together_one_goes_on() -> None:
    spawner = _idle_spawner()
    end = asyncio.Event()

    async def request() -> None:
        hub.keep_draft({})
        hub.pass_alone(spawner)
        await end.wait()

    first = asyncio.create_task(request())
    second = asyncio.create_task(request())
    with pytest.raises(hub.Refusal, match="started already"):
        await second

    end.set()
    await first
    await asyncio.create_task(request())

"""The events of pods that wait for a node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from aiohttp import web

from gpuspawner.cluster import pod_events
from gpuspawner.cluster.following import Access
from gpuspawner.cluster.pod_events import Heard, PodEvents
from gpuspawner.cluster.retries import Backoff
from gpuspawner.cluster.wakeups import Contact
from gpuspawner.kube.autoscaling import Event
from tests.unit.makers.scripted import FAST, ScriptedServer, Step, failure, page, telling, watch
from tests.unit.makers.scripted import event as change
from tests.waiting import UNIT_PATIENCE as PATIENCE


def sent(
    name: str = "a", uid: str = "u", version: str = "1", namespace: str = "jhub"
) -> dict[str, object]:
    return {
        "metadata": {"name": f"{name}.1", "namespace": namespace, "resourceVersion": version},
        "involvedObject": {"name": name, "uid": uid},
    }


def event(*args: str, **fields: str) -> Event:
    return msgspec.convert(sent(*args, **fields), Event)


@pytest.fixture
def no_rest(monkeypatch) -> None:
    """Let a watch end as soon as no pod waits."""
    monkeypatch.setattr(pod_events, "_REST_SECONDS", 0)


@asynccontextmanager
async def hearing(
    *script: Step, notify: Callable[[], None] = lambda: None, contact: Contact | None = None
) -> AsyncIterator[PodEvents]:
    """Hear the events of a scripted server; when the script is used up, it answers 503."""
    server = ScriptedServer(events=list(script))
    async with server.serving():
        access = Access(server.configuration, FAST, notify, contact or Contact())
        events = PodEvents(access)
        try:
            yield events
        finally:
            await events.close()


def watches() -> set[asyncio.Task[Any]]:
    """The watches that go on, of all namespaces."""
    return {task for task in asyncio.all_tasks() if "PodEvents._watch" in repr(task)}


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)


async def until_silent(heard: Heard) -> None:
    await until(lambda: not heard.is_heard)


async def test_only_the_events_of_a_waiting_pod_are_kept() -> None:
    told = Mock()
    async with hearing(notify=told) as events:
        with events.of("jhub", "a") as heard:
            events.hear(event("a"))
            events.hear(event("b"))
            events.hear(event("a", namespace="other"))

            assert heard.take("u") == [event("a")]
            assert heard.take("u") == []
        told.assert_called_once()


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([page(sent())], id="on the first page"),
        pytest.param([page(sent("b"), then="more"), page(sent())], id="on a later page"),
        pytest.param([page(), watch(change("ADDED", sent()))], id="new in the watch"),
        pytest.param([page(), watch(change("MODIFIED", sent()))], id="again in the watch"),
        pytest.param([page(), failure(410), page(sent())], id="in a new list"),
        pytest.param([failure(503), page(sent())], id="in a list after an outage"),
    ],
)
async def test_an_event_is_heard_wherever_it_is(answers) -> None:
    last = watch(change("MODIFIED", sent(version="2")), hold=True)
    async with hearing(*answers, last) as events:
        with events.of("jhub", "a") as heard:
            await until(lambda: event(version="2") in heard.all())

            assert heard.take("u") == [event(), event(version="2")]


async def test_all_who_hear_a_pod_hear_each_event() -> None:
    told = Mock()
    async with hearing(notify=told) as events:
        with events.of("jhub", "a") as first:
            with events.of("jhub", "a") as second:
                events.hear(event())
                assert first.take("u") == second.take("u") == [event()]
            events.hear(event(version="2"))

            assert first.take("u") == [event(version="2")]
            assert second.take("u") == []
        assert told.call_count == 2


async def test_who_hears_a_pod_later_hears_what_others_have_heard_of_it() -> None:
    async with hearing() as events:
        with events.of("jhub", "a") as first:
            events.hear(event(version="1"))
            events.hear(event(version="2"))
            first.take("u")

            with events.of("jhub", "a") as second:
                assert second.take("u") == [event(version="2")]
                events.hear(event(version="2"))
                assert second.take("u") == []


async def test_an_older_pods_events_are_kept_apart() -> None:
    async with hearing() as events:
        with events.of("jhub", "a") as heard:
            events.hear(event(uid="older"))

            assert heard.take("newer") == []


async def test_an_event_that_a_new_list_repeats_is_kept_once() -> None:
    async with hearing() as events:
        with events.of("jhub", "a") as heard:
            events.hear(event())
            assert heard.take("u") == [event()]
            events.hear(event())
            assert heard.take("u") == []
            events.hear(event(version="2"))
            assert heard.take("u") == [event(version="2")]


async def test_an_event_that_expires_is_not_heard_once_more() -> None:
    """The API server tells of it with a new version, as of every object that is deleted."""
    gone, later = change("DELETED", sent(version="2")), sent(uid="later", version="3")
    script = page(sent()), watch(gone, change("ADDED", later), hold=True)
    async with hearing(*script) as events:
        with events.of("jhub", "a") as heard:
            await until(lambda: event(uid="later", version="3") in heard.all())

            assert heard.take("u") == [event()]


@pytest.mark.usefixtures("no_rest")
async def test_namespaces_in_which_nobody_waits_any_more_are_forgotten_after_a_while() -> None:
    async with hearing() as events:
        for number in range(3):
            with events.of(f"user-{number}", "a"), events.of(f"user-{number}", "b"):
                assert len(watches()) == number + 1
        await asyncio.wait(watches(), timeout=PATIENCE)

        assert not watches()
        assert (events._heard, events._watches, events._is_heard) == ({}, {}, {})


@pytest.mark.usefixtures("no_rest")
async def test_the_next_start_goes_on_with_the_watch_of_the_last_one() -> None:
    async with hearing() as events:
        with events.of("jhub", "a"):
            first = watches()
        with events.of("jhub", "b") as heard:
            events.hear(event("b"))
            for _ in range(5):
                await asyncio.sleep(0)

            assert watches() == first
            assert heard.take("u") == [event("b")]


async def test_the_next_start_asks_at_once_if_the_watch_that_rests_is_deaf(monkeypatch) -> None:
    monkeypatch.setattr(Backoff, "before_retry", lambda *_: PATIENCE * 10)
    asked = asyncio.Event()
    async with hearing(failure(403), telling(asked, page())) as events:
        with events.of("jhub", "a") as heard:
            await until_silent(heard)
        with events.of("jhub", "b") as heard:
            assert heard.is_heard
            await asyncio.wait_for(asked.wait(), PATIENCE)


@pytest.mark.each_python
@pytest.mark.parametrize("is_waiting", [True, False], ids=["a pod waits", "it rests"])
async def test_after_the_views_end_no_watch_goes_on(is_waiting) -> None:
    async with hearing() as events:
        with events.of("jhub", "a"):
            [going_on] = watches()
            if is_waiting:
                await events.close()
        if not is_waiting:
            await events.close()

        assert going_on.cancelling()
        assert (events._heard, events._watches, events._ends) == ({}, {}, {})


async def test_a_hub_that_may_not_read_events_knows_it() -> None:
    async with hearing(failure(403)) as events:
        with events.of("jhub", "a") as heard:
            assert heard.is_heard
            await until_silent(heard)
            with events.of("jhub", "b") as other:
                assert not other.is_heard
            with events.of("other", "c") as elsewhere:
                assert elsewhere.is_heard


async def test_waits_one_after_the_other_share_the_connections() -> None:
    server = ScriptedServer()
    async with server.serving():
        events = PodEvents(Access(server.configuration, FAST, lambda: None))
        for name in ("a", "b"):
            with events.of("jhub", name):
                await until(lambda: events._client._api)
        assert server.loads == 1

        await events.close()
        assert events._client._api is None


async def test_an_error_of_ours_is_no_silence_of_autoscalers(caplog, monkeypatch) -> None:
    broken = Mock(side_effect=AssertionError("planted"))
    async with hearing(page(sent()), page(sent())) as events:
        monkeypatch.setattr(events, "hear", broken)
        with events.of("jhub", "a") as heard:
            await until_silent(heard)
            await until(lambda: broken.call_count > 1)
    assert "Reading events failed; starting again" in caplog.text


async def test_events_are_heard_again_as_soon_as_the_server_is_back_for_others(monkeypatch) -> None:
    monkeypatch.setattr(Backoff, "before_retry", lambda *_: PATIENCE * 10)
    contact, again = Contact(), asyncio.Event()

    async def fail(request: web.Request) -> web.StreamResponse:
        contact.wake()
        return await failure(503)(request)

    hear = telling(again, watch(hold=True))
    async with hearing(fail, page(), hear, contact=contact) as events:
        with events.of("jhub", "a"):
            await asyncio.wait_for(again.wait(), PATIENCE)

"""What a watcher says of a scripted server."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from gpuspawner.cluster.kinds import ObjectKind
from gpuspawner.cluster.list_watch import Confirmed, Page, Signal, Watcher
from gpuspawner.cluster.retries import Backoff
from gpuspawner.kube.objects import AnyObject, Undecodable
from tests.unit.makers.scripted import FAST, ScriptedServer
from tests.waiting import UNIT_PATIENCE as PATIENCE

THINGS = ObjectKind("Pod", "/things")


async def signals_of(server: ScriptedServer, count: int, backoff: Backoff = FAST) -> list[Signal]:
    """Return the first signals of a watcher that follows this server's things."""
    async with server.serving() as client:
        return await first(Watcher(client, THINGS, backoff).signals(), count)


async def first(signals: AsyncIterator[Signal], count: int) -> list[Signal]:
    got: list[Signal] = []
    async with asyncio.timeout(PATIENCE):
        async for signal in signals:
            if not isinstance(signal, Confirmed) or signal.changes:
                got.append(signal)
            if len(got) == count:
                break
    return got


def names(signal: Signal) -> list[str]:
    """Return the names on a page, or the types and names in a batch of changes."""
    match signal:
        case Page(items):
            return [msgspec.json.decode(item)["metadata"]["name"] for item in items]
        case Confirmed(changes):
            return [f"{change.type} {_name(change.object)}" for change in changes]
    raise AssertionError(signal)


def _name(parsed: AnyObject | Undecodable) -> str:
    return parsed.name if isinstance(parsed, Undecodable) else parsed.metadata.name

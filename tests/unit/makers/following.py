"""Forms that show what a test sets, their clients, and a hub that keeps them current."""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

from gpuspawner.policies.usage import Usage
from gpuspawner.web.broadcast import Broadcast
from gpuspawner.web.open_form import Shown
from gpuspawner.web.open_streams import KEEP_ALIVE, Stream
from tests.unit.makers.worlds import StillView


class Form:
    """A form that shows what the test sets.

    Attributes:
        shows: What all forms show, by the question.
        asked: The questions that were answered.
    """

    shows: dict[str, object]
    asked: list[str]
    may_change = False

    def __init__(self, question: str, for_all: bool = True) -> None:
        self._question = question
        self._for_all = for_all

    async def renew(self) -> None:
        raise AssertionError("nothing may change")

    def question(self) -> Hashable:
        return self._question

    async def answer(self) -> Shown:
        self.asked.append(self._question)
        found = self.shows[self._question]
        if isinstance(found, Exception):
            raise found
        return Shown({"accelerators": found}, self._for_all)


def always() -> bool:
    return True


class Client:
    """What a stream has sent."""

    def __init__(
        self, form: Form, lasts: float = 1e9, may_stay: Callable[[], bool] = always
    ) -> None:
        self.got: list[bytes] = []
        self._sent = asyncio.Event()
        clock = asyncio.get_running_loop().time
        self.stream = Stream(form, self._send, clock() + lasts, may_stay, clock)

    def _send(self, sent: bytes) -> asyncio.Future[None]:
        self.got.append(sent)
        self._sent.set()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    @property
    def shown(self) -> list[str]:
        told = [it.decode() for it in self.got if it != KEEP_ALIVE]
        return [it.partition('accelerators": ')[2].rstrip("}\n") for it in told]

    async def until(self, *shown: str) -> None:
        async with asyncio.timeout(3600):
            while self.shown != list(shown):
                self._sent.clear()
                await self._sent.wait()


class Hub:
    """A hub's view, and its streams."""

    def __init__(self) -> None:
        self.view = StillView()
        self.usage = Usage()
        runtime: Any = SimpleNamespace(view=self.view, accounts=SimpleNamespace(usage=self.usage))
        self.broadcast = Broadcast(runtime)

    def shows(self, found: object, question: str = "") -> None:
        """Let forms show something else from now on."""
        Form.shows[question] = found
        self.view.wake()

    @asynccontextmanager
    async def following(self, *clients: Client) -> AsyncIterator[None]:
        """Let clients follow while the block runs."""
        tasks = [asyncio.create_task(self.broadcast.follow(it.stream)) for it in clients]
        try:
            yield
        finally:
            for client in clients:
                client.stream.end()
            await asyncio.gather(*tasks)

    @asynccontextmanager
    async def showing(self, *clients: Client) -> AsyncIterator[None]:
        """As `following`, once all clients show something."""
        async with self.following(*clients):
            for client in clients:
                await client.until("0")
            yield

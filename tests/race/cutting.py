"""A way to the API server that breaks: connections that are only listened to are reset."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlparse

# An open watch asks nothing. A request that is under way is left alone: a proxy in between that
# breaks those as well breaks KubeSpawner's own calls, which are not what is tested here.
_QUIET_SECONDS = 0.15
_RESET = struct.pack("ii", 1, 0)


class Cutter:
    """Passes on what comes to a port of this machine, and cuts while told to.

    Args:
        url: Where the API server is.
        dice: Decides when, and whom.

    Attributes:
        port: Where it listens.
        cuts: How many connections it has reset.
    """

    def __init__(self, url: str, dice: random.Random) -> None:
        self._host, self._port = urlparse(url).hostname, urlparse(url).port
        self._dice = dice
        self._asked: dict[asyncio.StreamWriter, float] = {}
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._stop = asyncio.Event()
        self.is_cutting = False
        self.port = 0
        self.cuts = 0

    @contextmanager
    def open(self) -> Iterator[None]:
        """Pass on while the block lasts."""
        thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))
        thread.start()
        self._listening.wait()
        try:
            yield
        finally:
            self._loop.call_soon_threadsafe(self._stop.set)
            thread.join()

    @contextmanager
    def cutting(self) -> Iterator[None]:
        """Cut while the block lasts."""
        self.is_cutting = True
        try:
            yield
        finally:
            self.is_cutting = False

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        cutting = asyncio.create_task(self._cut())
        await self._stop.wait()
        cutting.cancel()
        server.close()
        for client in list(self._asked):
            client.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        try:
            answers, server = await asyncio.open_connection(self._host, self._port)
        except OSError:
            client.transport.abort()
            return
        self._asked[client] = time.monotonic()
        there = asyncio.create_task(self._copy(reader, server, client))
        back = asyncio.create_task(self._copy(answers, client, None))
        await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
        for side in (there, back):
            side.cancel()
        self._asked.pop(client, None)
        client.transport.abort()
        server.transport.abort()

    async def _copy(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        asking: asyncio.StreamWriter | None,
    ) -> None:
        try:
            while data := await reader.read(65536):
                if asking is not None:
                    self._asked[asking] = time.monotonic()
                writer.write(data)
                await writer.drain()
        except OSError:
            return

    async def _cut(self) -> None:
        while True:
            await asyncio.sleep(self._dice.uniform(0.05, 0.3))
            now = time.monotonic()
            quiet = [
                client
                for client, asked in self._asked.items()
                if now - asked > _QUIET_SECONDS and not client.transport.is_closing()
            ]
            if self.is_cutting and quiet:
                self.cuts += 1
                chosen = self._dice.choice(quiet)
                raw: socket.socket = chosen.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                chosen.transport.abort()

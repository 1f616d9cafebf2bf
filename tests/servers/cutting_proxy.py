"""A TCP proxy in front of the API server; tests cut the connections through it."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlparse

from localcluster import LocalCluster
from localcluster import kubeconfig as kubeconfigs

T = TypeVar("T")

# A client with an open watch sends nothing for longer than this; one with a request doesn't.
_IDLE_SECONDS = 0.15
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, for 0 s: closing resets the connection


class CuttingProxy:
    """Passes connections on to the API server of a cluster until they are cut.

    It runs in a thread of its own, so that a hub in another process can use it too.

    Attributes:
        held: Whether new connections are refused.
        cuts: How many connections were cut.
    """

    def __init__(self, cluster: LocalCluster) -> None:
        self.held = False
        self.cuts = 0
        self._cluster = cluster
        self._port = 0
        self._loop = asyncio.new_event_loop()
        # Each client, with the time at which it last sent something.
        self._clients: dict[asyncio.StreamWriter, float] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        """Pass connections on while the block lasts."""
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        server = self._run(asyncio.start_server(self._pass_on, "127.0.0.1", 0))
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            self._run(self._close(server))
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    def kubeconfig(self, path: Path, token: str, namespace: str = "default") -> Path:
        """Write a kubeconfig that leads through the proxy, as the token's user."""
        url, ca = f"https://127.0.0.1:{self._port}", self._cluster.ca
        return kubeconfigs.write(path, url=url, ca=ca, token=token, namespace=namespace)

    def cut(self) -> None:
        """Cut every connection, in the middle of what it carries."""
        self._run(self._cut())

    @contextmanager
    def cutting_idle(
        self, dice: random.Random, longest: float = 0.3, idle: float = _IDLE_SECONDS
    ) -> Iterator[None]:
        """Reset idle connections one by one while the block lasts: the hub's watches.

        Requests stay whole: a lost one would also fail KubeSpawner's own calls.

        Args:
            dice: Chooses the connections and the pauses.
            longest: The longest pause between two cuts, in seconds.
            idle: How long a client must have sent nothing; longer if the hub may be busy.
        """
        work = self._cut_idle(dice, longest, idle)
        cutting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            yield
        finally:
            cutting.cancel()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _close(self, server: asyncio.Server) -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if self.held:
            client.transport.abort()
            return
        self._clients[client] = time.monotonic()
        to = urlparse(self._cluster.url)
        try:
            answers, server = await asyncio.open_connection(to.hostname, to.port)
            await asyncio.gather(self._copy(reader, server, client), self._copy(answers, client))
        except OSError:
            pass
        finally:
            del self._clients[client]
            client.transport.abort()

    async def _copy(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        client: asyncio.StreamWriter | None = None,
    ) -> None:
        """Copy until one side is gone; note when the client, if it is given, sends something."""
        with suppress(OSError):
            try:
                while data := await reader.read(65536):
                    if client is not None:
                        self._clients[client] = time.monotonic()
                    writer.write(data)
                    await writer.drain()
            finally:
                writer.close()

    async def _cut(self) -> None:
        self.cuts += len(self._clients)
        for client in self._clients:
            client.transport.abort()

    async def _cut_idle(self, dice: random.Random, longest: float, least: float) -> None:
        while True:
            await asyncio.sleep(dice.uniform(0.05, longest))
            now = time.monotonic()
            idle = [
                client
                for client, sent in self._clients.items()
                if now - sent > least and not client.transport.is_closing()
            ]
            if idle:
                self.cuts += 1
                chosen = dice.choice(idle)
                raw: socket.socket = chosen.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                chosen.transport.abort()

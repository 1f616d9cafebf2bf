"""A connection to the API server that can be cut: bytes go through until a test says otherwise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from localcluster import LocalCluster
from localcluster import kubeconfig as kubeconfigs


class Line:
    """Carries connections to an API server, which can all be cut at any byte.

    Attributes:
        held: Whether new connections are refused.
    """

    def __init__(self, host: str, port: int) -> None:
        self.held = False
        self._server = host, port
        self._writers: set[asyncio.StreamWriter] = set()
        self._carrying: set[asyncio.Task[None]] = set()

    def cut(self) -> int:
        """Cut every connection, in the middle of whatever it carries; tell how many."""
        count = len(self._writers)
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        return count

    async def close(self) -> None:
        """Cut every connection for good."""
        self.held = True
        self.cut()
        await asyncio.gather(*self._carrying)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Join a client to the API server for as long as both stay."""
        if self.held:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection(*self._server)
            self._writers |= {writer, far_writer}
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def line_to(cluster: LocalCluster, folder: Path) -> AsyncIterator[tuple[Line, Path]]:
    """A line to the cluster, and a kubeconfig of the administrator's that leads through it."""
    address = urlsplit(cluster.url)
    line = Line(address.hostname or "", address.port or 0)
    server = await asyncio.start_server(line.carry, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    path = folder / "kubeconfig"
    kubeconfigs.write(path, url=f"https://127.0.0.1:{port}", ca=cluster.ca, token=cluster.token)
    try:
        yield line, path
    finally:
        server.close()
        await line.close()

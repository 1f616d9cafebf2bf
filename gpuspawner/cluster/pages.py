"""Reads a whole collection page by page, and fetches the next page while one is processed.

Reading ahead costs the memory of one more page, and lets the API server work while we do.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress

import msgspec

from gpuspawner.cluster.background import Background
from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.cluster.list_page import ListPage, decode_page
from gpuspawner.kube.objects import UNDECODABLE

# client-go's default; at 6 kB a pod a page is about 3 MB.
_PAGE_SIZE = 500
# Two pages are in memory at a time; we ask for fewer large objects.
_PAGE_BYTES = 6 * 1024 * 1024
# We stop reading a longer page and ask for a smaller one: 500 pods of the largest size are 6 GB,
# and the hub keeps a whole page in memory.
_LONGEST_PAGE = 4 * _PAGE_BYTES


async def pages(
    client: Client, path: str, query: Mapping[str, str], silence: float, background: Background
) -> AsyncGenerator[ListPage, None]:
    """Yield all pages of a collection; the last one has no ``continue``.

    `silence` are the seconds without a byte after which reading a page fails. Pages are
    decompressed and decoded in turns of `background`.

    Raises:
        RequestError: A page didn't come, or isn't a list.
    """
    source = _Source(client, path, silence, background)
    asked = dict(query)
    coming = asyncio.ensure_future(source.fetch(asked, _PAGE_SIZE))
    try:
        while True:
            body, limit = await coming
            page = await _decoded(body, background)
            asked["continue"] = page.metadata.continue_
            if not page.metadata.continue_:
                yield page
                return
            limit = _fitting(limit, len(body))
            coming = asyncio.ensure_future(source.fetch(dict(asked), limit))
            del body
            yield page
            del page  # the next one may take long
    finally:
        coming.cancel()
        with suppress(asyncio.CancelledError, RequestError):
            await coming


class _Source(msgspec.Struct, frozen=True):
    """Where pages come from."""

    client: Client
    path: str
    silence: float
    background: Background

    async def fetch(self, query: Mapping[str, str], limit: int) -> tuple[bytearray, int]:
        """Return a page and the limit that it was asked for with; ask again if it is too long."""
        while True:
            longest = _LONGEST_PAGE if limit > 1 else math.inf  # one object cannot be divided
            body = await self._body({**query, "limit": str(limit)}, longest)
            if len(body) <= longest:
                return body, limit
            limit = max(1, limit // 8)

    async def _body(self, query: Mapping[str, str], longest: float) -> bytearray:
        parts, size = [], 0
        # Decompressing costs the event loop a third of decrypting the same page uncompressed.
        async with self.client.get(self.path, query, self.silence, encoding="gzip") as response:
            while size <= longest and (part := await response.content.readany()):
                async with self.background:
                    # The rest of what has arrived is decompressed now, part by part.
                    while part and size <= longest:
                        parts.append(part)
                        size += len(part)
                        await self.background.end_turn_if_long()
                        part = response.content.read_nowait()
        return bytearray().join(parts)


async def _decoded(body: bytearray, background: Background) -> ListPage:
    try:
        return await decode_page(body, background)
    except UNDECODABLE as error:
        raise RequestError(f"the answer is no Kubernetes list: {error}") from None


def _fitting(limit: int, size: int) -> int:
    """How many objects to ask for after a page of `limit` that took `size` bytes."""
    return max(1, min(_PAGE_SIZE, limit * _PAGE_BYTES // max(size, 1)))

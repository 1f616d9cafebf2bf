"""Reads a whole collection page by page, and fetches the next page while one is processed.

Reading ahead costs the memory of one more page, and lets the API server work while we do.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress

import msgspec

from gpuspawner.cluster.client import Client, RequestError
from gpuspawner.kube.objects import UNDECODABLE, decode_deep

# client-go's default; at 6 kB a pod a page is about 3 MB.
_PAGE_SIZE = 500
# A page is decoded without a break, at about 1 ms a megabyte; we ask for fewer large objects.
_PAGE_BYTES = 6 * 1024 * 1024
# We stop reading a longer page and ask for a smaller one: 500 pods of the largest size are 6 GB,
# and the hub keeps a whole page in memory.
_LONGEST_PAGE = 4 * _PAGE_BYTES


class ListMeta(msgspec.Struct, gc=False, rename="camel"):
    """The metadata of a list, or of an object in a watch."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, gc=False):
    """One page: objects of the collection, still encoded."""

    metadata: ListMeta
    # A server without objects writes null.
    items: list[msgspec.Raw] | None = None


_DECODER = msgspec.json.Decoder(ListPage)


async def pages(
    client: Client, path: str, query: Mapping[str, str], silence: float
) -> AsyncGenerator[ListPage, None]:
    """Yield all pages of a collection; the last one has no ``continue``.

    `silence` are the seconds without a byte after which reading a page fails.

    Raises:
        RequestError: A page didn't come, or isn't a list.
    """
    asked = dict(query)
    coming = asyncio.ensure_future(_fetch(client, path, asked, _PAGE_SIZE, silence))
    try:
        while True:
            body, limit = await coming
            page = _decoded(body)
            asked["continue"] = page.metadata.continue_
            if not page.metadata.continue_:
                yield page
                return
            limit = _fitting(limit, len(body))
            coming = asyncio.ensure_future(_fetch(client, path, dict(asked), limit, silence))
            del body
            await asyncio.sleep(0)  # decoding was a turn of its own
            yield page
            del page  # the next one may take long
    finally:
        coming.cancel()
        with suppress(asyncio.CancelledError, RequestError):
            await coming


async def _fetch(
    client: Client, path: str, query: Mapping[str, str], limit: int, silence: float
) -> tuple[bytes, int]:
    """Return a page and the limit that it was asked for with; ask again if it is too long."""
    while True:
        longest = _LONGEST_PAGE if limit > 1 else math.inf  # one object cannot be divided
        body = await _body(client, path, {**query, "limit": str(limit)}, silence, longest)
        if len(body) <= longest:
            return body, limit
        limit = max(1, limit // 8)


async def _body(
    client: Client, path: str, query: Mapping[str, str], silence: float, longest: float
) -> bytes:
    parts, size = [], 0
    # Decompressing costs the event loop a third of decrypting the same page uncompressed.
    async with client.get(path, query, silence, encoding="gzip") as response:
        async for part in response.content.iter_any():
            parts.append(part)
            size += len(part)
            if size > longest:
                break
    return b"".join(parts)


def _fitting(limit: int, size: int) -> int:
    """How many objects to ask for after a page of `limit` that took `size` bytes."""
    return max(1, min(_PAGE_SIZE, limit * _PAGE_BYTES // max(size, 1)))


def _decoded(body: bytes) -> ListPage:
    try:
        return decode_deep(_DECODER, body)
    except UNDECODABLE as error:
        raise RequestError(f"the answer is no Kubernetes list: {error}") from None

"""One page of a list, and how it is decoded without holding the event loop.

Decoding a page as a whole takes some milliseconds. So it is cut into pieces, at borders between two
objects. What looks like such a border may also be inside of an object. A piece that ends there is
no JSON, and grows.
"""

import re

import msgspec

from gpuspawner.cluster.background import Background
from gpuspawner.kube.objects import UNDECODABLE, decode_deep

# Bytes. Decoding such a piece takes 0.2 ms.
_PIECE = 256 * 1024
# The beginning of a page as API servers write it. The group is how each of its objects begins, with
# kind and apiVersion if it is a custom resource.
_HEAD = re.compile(
    rb'\{(?:"(?:kind|apiVersion)":"[^"\\]*",|"metadata":\{[^{}]*\},)*'
    rb'"items":\[(\{(?:"(?:kind|apiVersion)":"[^"\\]*",)*"metadata":)'
)


class ListMeta(msgspec.Struct, gc=False, rename="camel"):
    """The metadata of a list, or of an object in a watch."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, gc=False):
    """One page: objects of the collection, still encoded."""

    metadata: ListMeta
    # A server without objects writes null.
    items: list[msgspec.Raw] | None = None


_PAGE_DECODER = msgspec.json.Decoder(ListPage)
_ITEMS_DECODER = msgspec.json.Decoder(list[msgspec.Raw])


async def decode_page(body: bytearray, background: Background) -> ListPage:
    """Decode a page in turns, one piece after the other.

    Raises:
        UNDECODABLE: It is no page of a list.
    """
    async with background:
        try:
            return await _in_pieces(body, background)
        except UNDECODABLE:
            return decode_deep(_PAGE_DECODER, body)


async def _in_pieces(body: bytearray, background: Background) -> ListPage:
    head = _HEAD.match(body)
    if head is None:
        return decode_deep(_PAGE_DECODER, body)
    border = b"}," + head[1]
    items: list[msgspec.Raw] = []
    first = at = head.start(1)
    length = _PIECE
    while (end := body.find(border, at + length)) >= 0:
        try:
            items += _between(body, at - 1, end + 1)
        except msgspec.DecodeError:
            length *= 2
        else:
            at, length = end + 2, _PIECE
        await background.end_turn_if_long()
    # What is left has the list's own fields and its last objects.
    page = _PAGE_DECODER.decode(body[:first] + body[at:])
    return ListPage(page.metadata, [*items, *(page.items or ())])


def _between(body: bytearray, before: int, after: int) -> list[msgspec.Raw]:
    """Decode what is between two bytes, which are brackets meanwhile: so nothing is copied."""
    kept = body[before], body[after]
    body[before], body[after] = b"[]"
    try:
        return _ITEMS_DECODER.decode(memoryview(body)[before : after + 1])
    finally:
        body[before], body[after] = kept

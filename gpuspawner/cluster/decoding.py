"""Decodes what the API server sends: a page of a list, and the stream of a watch.

Decoding a page as a whole takes some milliseconds. So it is cut into pieces, at borders between two
objects, without holding the event loop. What looks like such a border may also be inside of an
object. A piece that ends there is no JSON, and grows.

The stream is cut into lines, and each line is an event. A line is decoded once, into the fields
that we keep. So nothing else of the object, such as its environment variables, outlives the line.
"""

import re
from typing import Generic, TypeVar

import msgspec

from gpuspawner.cluster.background import Background
from gpuspawner.cluster.client import GONE, RequestError, Status
from gpuspawner.kube.objects import READ, UNDECODABLE, AnyObject, Undecodable, decode, decode_deep

# Bytes. Decoding such a piece takes 0.2 ms.
_PIECE = 256 * 1024
# The beginning of a page as API servers write it. The group is how each of its objects begins, with
# kind and apiVersion if it is a custom resource.
_PAGE_HEAD = re.compile(
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
    head = _PAGE_HEAD.match(body)
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


# The API server's etcd client sends at most 2 MiB, and JSON needs at most six bytes for one of them
# (`<` as \u003c). So an object has at most 12 MiB in JSON, and a longer line is no object.
LONGEST_LINE = 16 * 1024 * 1024
# Enough for the fields that `_HEAD` matches: a name has at most 253 characters.
_HEAD_LENGTH = 4096
# The API server writes the fields of an event and of its metadata in this order.
_HEAD = re.compile(
    rb'\{"type":"(?P<type>[A-Z]+)","object":\{(?:"(?:kind|apiVersion)":"[^"\\]*",)*'
    rb'"metadata":\{"name":"(?P<name>[^"\\]+)"(?:,"generateName":"[^"\\]*")?'
    rb'(?:,"namespace":"(?P<namespace>[^"\\]+)")?(?:,"(?:uid|selfLink)":"[^"\\]*")*'
    rb'(?:,"resourceVersion":"(?P<version>[^"\\]+)")?'
)

_T = TypeVar("_T")


class Change(msgspec.Struct, frozen=True):
    """One event of a watch.

    Attributes:
        type: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``.
        object: The fields of the object that we keep; a bookmark has none of interest.
        version: The object's resourceVersion; "" if it has none.
    """

    type: str
    object: AnyObject | Undecodable
    version: str = ""


class Head(bytes):
    """The beginning of a line that is longer than any object."""


class Lines:
    """Cuts a stream into lines; keeps only the head of a line that is longer than any object."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._length = 0

    def take(self, chunk: bytes) -> list[bytes]:
        """Return the lines that end in this chunk."""
        first, *others = chunk.split(b"\n")
        self._append(first)
        if not others:
            return []
        *whole, rest = others
        lines = [self._end(), *whole]
        self._append(rest)
        return [line for line in lines if line.strip()]

    def _append(self, part: bytes) -> None:
        self._length += len(part)
        self._begun.append(part)
        if self._length > LONGEST_LINE:
            self._begun = [b"".join(self._begun)[:_HEAD_LENGTH]]

    def _end(self) -> bytes:
        line = b"".join(self._begun)
        if self._length > LONGEST_LINE:
            line = Head(line)
        self._begun, self._length = [], 0
        return line


class _Event(msgspec.Struct, Generic[_T], gc=False):
    type: str
    object: _T


class _Versioned(msgspec.Struct, gc=False):
    metadata: ListMeta


_DECODERS: dict[str, msgspec.json.Decoder[_Event[AnyObject]]] = {
    kind: msgspec.json.Decoder(_Event[type_])  # type: ignore[valid-type]
    for kind, type_ in READ.items()
}
_RAW_DECODER = msgspec.json.Decoder(_Event[msgspec.Raw])
_decode_version = msgspec.json.Decoder(_Versioned).decode
_decode_status = msgspec.json.Decoder(Status).decode


def read_event(kind: str, line: bytes) -> Change:
    """Read one line of a watch; an object that can't be decoded becomes an `Undecodable`.

    Raises:
        RequestError: The line is an ERROR event, or no event at all.
    """
    if isinstance(line, Head):
        return _beheaded(kind, line)
    try:
        event = _DECODERS[kind].decode(line)
    except UNDECODABLE:
        return _read_slowly(kind, line)
    metadata = event.object.metadata
    if event.type == "ERROR" or (event.type != "BOOKMARK" and not metadata.name):
        return _read_slowly(kind, line)
    return Change(event.type, event.object, metadata.resource_version)


def _read_slowly(kind: str, line: bytes) -> Change:
    try:
        event = decode_deep(_RAW_DECODER, line)
    except UNDECODABLE as error:
        raise _unreadable(f"the answer is no watch event: {error}") from None
    if event.type == "ERROR":
        raise _error(event.object)
    return Change(event.type, decode(kind, event.object), _version(event.object))


def _beheaded(kind: str, head: Head) -> Change:
    found = _HEAD.match(head)
    if found is None:
        raise _unreadable("a line of the watch is longer than any object can be")
    said = {name: value.decode(errors="replace") for name, value in found.groupdict(b"").items()}
    undecodable = Undecodable(
        kind, said["namespace"], said["name"], None, "it is longer than any object can be"
    )
    return Change(said["type"], undecodable, said["version"])


def _unreadable(text: str) -> RequestError:
    """The next watch would repeat the line, so the status makes us list instead."""
    return RequestError(text, GONE)


def _version(encoded: msgspec.Raw) -> str:
    try:
        return _decode_version(encoded).metadata.resource_version
    except UNDECODABLE:
        return ""


def _error(encoded: msgspec.Raw) -> RequestError:
    try:
        status = _decode_status(encoded)
    except UNDECODABLE:
        status = Status()
    return RequestError(f"the watch ended: {status.message or 'no reason given'}", status.code)

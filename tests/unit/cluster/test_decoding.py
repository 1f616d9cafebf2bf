"""Cutting a watch into lines, and reading them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuspawner.cluster import decoding
from gpuspawner.cluster.background import Background
from gpuspawner.cluster.client import RequestError
from gpuspawner.cluster.decoding import LONGEST_LINE, Head, Lines, ListPage, decode_page, read_event
from gpuspawner.kube.objects import UNDECODABLE, Undecodable, decode_deep
from gpuspawner.kube.pods import Pod
from tests.unit.makers.scripted import event, obj

pytestmark = pytest.mark.each_python


def as_go_writes(type_: str, **metadata: str) -> bytes:
    """Return an event's line as the API server writes it: fields in its order, no white space."""
    body = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {}}
    return json.dumps({"type": type_, "object": body}, separators=(",", ":")).encode()


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_lines_do_not_depend_on_the_chunks(size: int) -> None:
    whole = [b"a" * 20, b"b", b"c" * 300]
    stream = b"\n".join(whole) + b"\n\n \ncut off"
    lines = Lines()

    got = [line for i in range(0, len(stream), size) for line in lines.take(stream[i : i + size])]

    assert got == whole


def test_almost_nothing_is_kept_of_an_endless_line() -> None:
    lines = Lines()
    piece = b"x" * 1_000_000
    for _ in range(100):
        assert lines.take(piece) == []

    assert sum(map(len, lines._begun)) < 10_000
    assert lines.take(b"\nnext\n")[1:] == [b"next"]


def test_the_longest_object_stays_whole_and_a_longer_line_becomes_a_head() -> None:
    lines = Lines()
    longest = b"x" * LONGEST_LINE

    assert lines.take(longest + b"\n") == [longest]
    [head] = lines.take(longest) + lines.take(b"x\n")
    assert isinstance(head, Head)


def test_an_event_has_a_type_a_version_and_an_object() -> None:
    change = read_event("Pod", event("ADDED", obj("a", "42", namespace="x")))

    assert (change.type, change.version) == ("ADDED", "42")
    assert isinstance(change.object, Pod)
    assert change.object.metadata.name == "a"


NAMED = {"name": "large", "generateName": "l-", "namespace": "x", "uid": "u"}


@pytest.mark.parametrize(
    ("kind", "head", "identity"),
    [
        ("Pod", as_go_writes("ADDED", **NAMED, resourceVersion="9", creationTimestamp="")[:-10],
         ("x", "large")),
        ("Node", as_go_writes("ADDED", name="n1", resourceVersion="9"), ("", "n1")),
        ("Node", as_go_writes("ADDED", name="n1", resourceVersion="9").replace(b"n1", b"n\xff"),
         ("", "n\ufffd")),
    ],
    ids=["of a namespace", "of none", "not UTF-8"],
)  # fmt: skip
def test_a_head_names_its_object(kind, head, identity) -> None:
    change = read_event(kind, Head(head))

    assert (change.type, change.version) == ("ADDED", "9")
    assert isinstance(change.object, Undecodable)
    assert (change.object.namespace, change.object.name) == identity
    assert (change.object.kind, change.object.node) == (kind, None)


def test_a_head_without_an_object_is_an_error() -> None:
    with pytest.raises(RequestError, match="longer than any object") as raised:
        read_event("Pod", Head(b"<html>"))
    assert raised.value.status == 410


@pytest.mark.parametrize("kind", ["Pod", "StorageClass"])
def test_an_error_event_is_an_error_for_every_kind(kind: str) -> None:
    with pytest.raises(RequestError, match="too old") as raised:
        read_event(kind, event("ERROR", {"status": "Failure", "message": "too old", "code": 410}))
    assert raised.value.status == 410
    with pytest.raises(RequestError, match="no reason given"):
        read_event(kind, event("ERROR", 3))


WHOLE = msgspec.json.Decoder(ListPage)
SMALL = 64
"""Bytes of a piece in these tests; large ones would make large examples."""
OWN = {"kind": "NodePool", "apiVersion": "karpenter.sh/v1"}

# Names of fields and marks of JSON, wherever a cut might trip over them.
texts = st.text(
    st.sampled_from('{}[]",:\\/ aé\N{GRINNING FACE}\x00\n'), max_size=6
) | st.sampled_from(['},{"metadata":{', '"items":[', "metadata"])
keys = st.sampled_from(["metadata", "items", "kind", "apiVersion", "spec"]) | texts
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(-1e9, 1e9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
metadata = st.fixed_dictionaries({"name": texts}, optional={"labels": values, "x": values})
plain = st.fixed_dictionaries({"metadata": metadata, "spec": values})
custom = st.fixed_dictionaries({**{k: st.just(v) for k, v in OWN.items()}, "metadata": metadata})
odd = st.fixed_dictionaries({"spec": values, "metadata": metadata}) | values
objects = st.none() | st.lists(plain, max_size=12) | st.lists(custom, max_size=12) | st.lists(odd)
envelopes = st.permutations(["kind", "apiVersion", "metadata", "items"])


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Pages as an API server writes them, or a proxy may write them anew."""
    meta = {"resourceVersion": draw(texts), "continue": draw(texts), "left": draw(values)}
    fields = {
        "kind": "PodList",
        "apiVersion": draw(texts),
        "metadata": meta if draw(st.booleans()) else {"resourceVersion": "1"},
        "items": draw(objects),
    }
    ordered = {name: fields[name] for name in draw(envelopes)}
    written = json.dumps(
        ordered,
        ensure_ascii=draw(st.booleans()),
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t:")])),
        indent=draw(st.sampled_from([None, None, None, 1])),
    )
    return written.encode("utf-8", "surrogatepass") + draw(st.sampled_from([b"", b"\n"]))


class Counting(Background):
    """Counts how often a turn might end."""

    ends = 0

    async def end_turn_if_long(self) -> None:
        self.ends += 1


def outcome(decode: Callable[[], ListPage]) -> object:
    """What comes out: the page, or the error's type and text."""
    try:
        page = decode()
    except UNDECODABLE as error:
        return type(error), str(error)
    return page.metadata, [bytes(item) for item in page.items or ()]


def in_pieces(body: bytes, size: int = SMALL, background: Background | None = None) -> ListPage:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_PIECE", size)
        return asyncio.run(decode_page(bytearray(body), background or Background()))


def written(items: object, **first: object) -> bytes:
    """A page without white space."""
    page = {**first, "metadata": {"resourceVersion": "7", "continue": "on"}, "items": items}
    return json.dumps(page, separators=(",", ":")).encode() + b"\n"


def pieces(body: bytes, size: int = SMALL) -> int:
    """How many pieces a page was tried to be decoded in, besides what is left."""
    background = Counting()
    page = in_pieces(body, size, background)

    assert outcome(lambda: page) == outcome(lambda: WHOLE.decode(body))
    return background.ends


@given(bodies(), st.integers(0, 200))
@example(written([{"metadata": {"name": '},{"metadata":{"'}, "spec": "x" * 70}] * 3), SMALL)
def test_pieces_have_the_objects_of_the_whole_page(body, size) -> None:
    assert outcome(lambda: in_pieces(body, size)) == outcome(lambda: WHOLE.decode(body))


@given(bodies(), st.data())
def test_a_broken_page_has_the_same_error_as_if_decoded_as_a_whole(body, data) -> None:
    begin = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(begin, min(begin + 3, len(body))))
    instead = data.draw(st.sampled_from([b"", b'"', b"}", b"{", b",", b"]", b"\\", b"\xff"]))
    broken = body[:begin] + instead + body[end:]

    assert outcome(lambda: in_pieces(broken)) == outcome(lambda: decode_deep(WHOLE, broken))


def test_a_page_is_cut_as_the_api_server_writes_it() -> None:
    pods = [{"metadata": {"name": f"p{n}"}, "spec": {"containers": [{}, {}]}} for n in range(100)]
    body = written(pods, kind="PodList", apiVersion="v1")

    assert pieces(body, size=1000) == len(body) // 1000


def test_a_page_of_custom_resources_is_cut_between_them_and_not_between_managed_fields() -> None:
    fields = [{"apiVersion": OWN["apiVersion"], "manager": name} for name in "abc"]
    pools = [{**OWN, "metadata": {"name": f"n{n}", "managedFields": fields}} for n in range(100)]
    plain = {"apiVersion": "karpenter.sh/v1", "items": pools, "kind": "NodePoolList"}
    page = {**plain, "metadata": {"resourceVersion": "7", "continue": ""}}
    body = json.dumps(page, separators=(",", ":")).encode()

    assert 0 < pieces(body, size=2000) <= len(body) // 2000


def test_an_object_full_of_what_looks_like_borders_is_tried_only_a_few_times() -> None:
    templates = [{"metadata": {"name": f"t{n}"}} for n in range(2000)]
    body = written([{"metadata": {"name": "a"}, "spec": templates}, {"metadata": {"name": "b"}}])

    assert 0 < pieces(body) < 15


def test_a_page_whose_managed_fields_are_too_deep_is_read_without_them() -> None:
    fields = b'{"f:x":' * 2000 + b"1" + b"}" * 2000
    deep = b'{"metadata":{"name":"deep","managedFields":[{"fieldsV1":%b}]},"spec":1}' % fields
    other = b'{"metadata":{"name":"other"}}'
    head = b'{"metadata":{"resourceVersion":"7"},"items":['
    body = head + b",".join([other, deep, other]) + b"]}"

    items = in_pieces(body).items or []

    assert [json.loads(bytes(it))["metadata"]["name"] for it in items] == ["other", "deep", "other"]


@pytest.mark.usefixtures("short_turns")
async def test_the_event_loop_is_free_between_two_pieces(monkeypatch, rounds) -> None:
    monkeypatch.setattr(decoding, "_PIECE", SMALL)

    body = written([{"metadata": {"name": f"p{n}"}} for n in range(100)])
    await decode_page(bytearray(body), Background())

    assert rounds.count > 10

"""Objects and answers that no API server should send neither stop the view nor hide others."""

from __future__ import annotations

import json
import logging

import pytest
from aiohttp import web

from gpuspawner.cluster.health import Live
from gpuspawner.cluster.view import ClusterView
from gpuspawner.kube.objects import Undecodable, decode
from tests.unit.makers.scripted import Step, event, obj, page, raw, watch
from tests.unit.makers.views import NODE, POD, until, viewing
from tests.waiting import UNIT_PATIENCE as PATIENCE

pytestmark = pytest.mark.each_python

DEEP = b'{"metadata":{"name":"deep","namespace":"x"},"spec":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
# Go's encoder writes neither DEEP nor HALF; our decoder fails on them while it looks for an end.
HALF = b'{"metadata":{"name":"o\\ud800","namespace":"x"}}'
LARGE = json.dumps(obj("large", namespace="x", data="x" * 10_000_000)).encode()
# Deeper than our decoder can go, in the one field that may be so deep: metadata.managedFields.
TANGLED = (
    b'{"metadata":{"name":"tangled","namespace":"x","managedFields":[{"manager":"a]},","fieldsV1":'
    + b'{"f:a":' * 20_000
    + b"{}"
    + b"}" * 20_000
    + b'}]},"spec":{"nodeName":"n1"}}'
)

BROKEN = {
    "null": b"null",
    "a number": b"5",
    "a text": b'"pod"',
    "a list": b"[[],[]]",
    "nothing": b"{}",
    "no metadata": b'{"metadata":null}',
    "no name": b'{"metadata":{"namespace":"x"}}',
    "a name that is a number": b'{"metadata":{"name":7,"namespace":"x"}}',
    "labels that are a list": b'{"metadata":{"name":"o","namespace":"x","labels":["a"]}}',
    "a label that is a number": b'{"metadata":{"name":"o","namespace":"x","labels":{"a":1}}}',
    "null where a text belongs": (
        b'{"metadata":{"name":"o","namespace":"x"},"spec":{"nodeName":null}}'
    ),
    "null where a container belongs": (
        b'{"metadata":{"name":"o","namespace":"x"},"spec":{"containers":[null]}}'
    ),
    "a priority beyond all numbers": (
        b'{"metadata":{"name":"o","namespace":"x"},"spec":{"priority":1e400}}'
    ),
    "bytes that are no text": b'{"metadata":{"name":"o\xff\xfe","namespace":"x"}}',
    "a field twice": b'{"metadata":{"name":"o","namespace":"x"},"spec":{},"spec":5}',
}

UNUSUAL = {
    "null where a list belongs": (
        b'{"metadata":{"name":"o","namespace":"x","labels":null,"ownerReferences":null},'
        b'"spec":{"nodeName":"n1","containers":null,"tolerations":null,"volumes":null}}'
    ),
    "10 MB": LARGE,
    "managed fields of any depth": TANGLED,
}


def sees(view: ClusterView) -> bool:
    """Whether the view is live and shows the good pod."""
    return isinstance(view.health(), Live) and "jhub/a" in view.state.pods


def listing(*items: bytes) -> Step:
    return raw(b'{"metadata":{"resourceVersion":"1"},"items":[' + b",".join(items) + b"]}")


def changed(item: bytes) -> bytes:
    return b'{"type":"MODIFIED","object":' + item + b"}\n"


def in_a_list(item: bytes) -> list[Step]:
    return [listing(item, json.dumps(POD).encode(), item), watch(hold=True)]


def as_an_event(item: bytes) -> list[Step]:
    return [page(), watch(changed(item), event("ADDED", POD), hold=True)]


@pytest.mark.parametrize("sent", [in_a_list, as_an_event])
@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_an_undecodable_object_hides_no_other(broken, sent) -> None:
    async with viewing(nodes=[page(NODE), watch(hold=True)], pods=sent(broken)) as (view, _):
        await until(view, lambda: sees(view))

        assert list(view.state.undecodable)


@pytest.mark.parametrize("sent", [in_a_list, as_an_event])
@pytest.mark.parametrize("item", UNUSUAL.values(), ids=UNUSUAL)
async def test_an_unusual_object_is_decoded_and_hides_no_other(item, sent) -> None:
    async with viewing(pods=sent(item)) as (view, server):
        await until(view, lambda: sees(view))

        assert not list(view.state.undecodable)
        assert len(view.state.pods) + len(view.state.unbound_pods) == 2
        lists = [query for query in server.queries if "limit" in query]
        assert len(lists) == 2  # nodes and pods, each once


async def test_an_undecodable_pod_can_be_deleted_or_repaired() -> None:
    broken = obj("o", namespace="x", spec={"nodeName": 7})
    good = obj("o", "2", namespace="x", spec={"nodeName": "n1"})
    for last in (event("DELETED", {**broken, "spec": 5}), event("MODIFIED", good)):
        async with viewing(pods=[page(broken, POD), watch(last, hold=True)]) as (view, _):
            assert await view.first_list(PATIENCE)
            await until(view, lambda view=view: not list(view.state.undecodable))


@pytest.mark.parametrize(
    "spec",
    [
        "s3cret",
        {"nodeName": ["s3cret"]},
        {"containers": ["s3cret"]},
        {"containers": [{"name": "c", "env": [{"value": "s3cret"}], "ports": "s3cret"}]},
        {"nodeSelector": {"s3cret": 7}},
        {"priority": "s3cret"},
    ],
    ids=range(6),
)
def test_an_undecodable_object_is_not_quoted(spec) -> None:
    decoded = decode("Pod", json.dumps(obj("o", namespace="x", spec=spec)).encode())

    assert isinstance(decoded, Undecodable)
    assert "s3cret" not in repr(decoded)


async def test_a_thousand_undecodable_objects_are_one_line_in_the_log(caplog) -> None:
    caplog.set_level(logging.INFO)
    broken = [obj(f"o{number}", namespace="x", spec=5) for number in range(1_000)]
    async with viewing(pods=[page(*broken, POD), watch(hold=True)]) as (view, _):
        assert await view.first_list(PATIENCE)

        assert len(list(view.state.undecodable)) == 1_000
    assert sum("understood" in record.message for record in caplog.records) == 1
    assert max(len(record.message) for record in caplog.records) < 500


@pytest.mark.parametrize(
    "poison",
    [
        pytest.param(b'{"type":"ADDED"}\n', id="an event without an object"),
        pytest.param(b'{"type":{},"object":{}}\n', id="an event of no type"),
        pytest.param(b"\x00\xff garbage\n", id="no JSON"),
        pytest.param(b"[]\n", id="a list"),
        pytest.param(b"<html>\n", id="a proxy's page"),
        pytest.param(changed(HALF), id="half a character"),
        pytest.param(changed(DEEP), id="20,000 lists in each other"),
    ],
)
async def test_a_list_skips_an_event_that_every_watch_would_repeat(poison) -> None:
    """A watch from the same version would get it again forever."""
    pods = [page(version="5"), watch(poison, hold=True), page(POD, version="9"), watch(hold=True)]
    async with viewing(pods=pods) as (view, _):
        await until(view, lambda: sees(view))


async def cut_off(request: web.Request) -> web.StreamResponse:
    """Send a whole list, but less than was announced."""
    response, body = web.StreamResponse(), b'{"metadata":{"resourceVersion":"1"},"items":[]}'
    response.content_length = len(body) + 10
    await response.prepare(request)
    await response.write(body)
    assert request.transport is not None
    request.transport.close()
    return response


@pytest.mark.parametrize(
    "unreadable",
    [
        raw(b'{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"'),
        raw(b'{"metadata":{"resourceVersion":"1"},"items":[{]}}'),
        raw(b'{"metadata":{"resourceVersion":"1"},"items":{"a":1}}'),
        raw(b'{"metadata":{"resourceVersion":1},"items":[]}'),
        raw(b'{"metadata":null,"items":[]}'),
        raw(b'{"kind":"Status","status":"Failure"}'),
        raw(b'{"items": []}'),
        raw(b'{"metadata":{},"items":[]}'),
        *map(raw, (b"<html>", b"[]", b"\xff\xfe", b"")),
        listing(HALF),
        listing(DEEP),
        cut_off,
    ],
    ids=range(15),
)
async def test_an_unreadable_list_is_no_empty_cluster_and_is_requested_again(unreadable) -> None:
    async with viewing(pods=[unreadable, page(POD), watch(hold=True)]) as (view, _):
        await until(view, lambda: sees(view))

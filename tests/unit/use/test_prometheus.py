"""DCGM exporter's metrics, as Prometheus answers, become the use of devices by pod."""

from __future__ import annotations

import json
import math
from base64 import b64decode
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from gpuspawner.use.prometheus import ENGINE, UTILIZATION, Prometheus, UseUnknownError

if TYPE_CHECKING:
    from collections.abc import Iterator

ANN = {"pod": "jupyter-ann", "namespace": "hub", "UUID": "GPU-1"}
EXPORTED = {"exported_pod": "jupyter-ann", "exported_namespace": "hub", "UUID": "GPU-1",
            "pod": "dcgm-exporter-x", "namespace": "gpu-operator"}  # fmt: skip
SLICE = {**ANN, "GPU_I_ID": "3", "GPU_I_PROFILE": "1g.5gb"}
KEY = "hub", "jupyter-ann"
AT = 1_800_000_000.5


class Played:
    """A Prometheus that answers each kind of query with what a test says.

    Attributes:
        samples: The labels and values by the function and the metric of a query.
        status: Of its answers.
        also: What its answers say beside the data.
        asked_by: The header with the name and the password of the last query.
    """

    def __init__(self) -> None:
        self.samples: dict[tuple[str, str], list[tuple[dict[str, str], object]]] = {}
        self.status = 200
        self.body: bytes | None = None
        self.also: dict[str, object] = {}
        self.queries: list[str] = []
        self.asked_by = ""

    def answer(self, query: str) -> bytes:
        self.queries.append(query)
        if self.body is not None:
            return self.body
        found: list[dict[str, Any]] = []
        for (function, metric), samples in self.samples.items():
            if function in query and metric in query:
                found += [{"metric": it, "value": [AT, str(value)]} for it, value in samples]
        data = {"resultType": "vector", "result": found}
        return json.dumps({"status": "success", "data": data, **self.also}).encode()


@pytest.fixture
async def played() -> Iterator[tuple[Played, Prometheus]]:
    playing = Played()

    class Query(RequestHandler):
        def post(self) -> None:
            playing.asked_by = self.request.headers.get("Authorization", "")
            query = parse_qs(self.request.body.decode())["query"][0]
            self.set_status(playing.status)
            self.finish(playing.answer(query))

    server = HTTPServer(Application([("/api/v1/query", Query)]))
    socket, port = bind_unused_port()
    server.add_sockets([socket])
    yield playing, Prometheus(f"http://127.0.0.1:{port}")
    server.stop()
    await server.close_all_connections()


@pytest.mark.parametrize("labels", [ANN, EXPORTED], ids=["honoured labels", "exported labels"])
async def test_a_device_is_its_pods_however_prometheus_scrapes(labels, played) -> None:
    playing, prometheus = played
    playing.samples = {
        ("max_over_time", ENGINE): [(labels, 0.5)],
        ("count_over_time", ENGINE): [(labels, 30)],
    }

    window = await prometheus.window(3600)

    (device,) = window.devices[KEY]
    assert (device.used, device.known) == (0.5, 0.5)
    assert (window.seconds, window.until) == (3600, AT)


async def test_a_slice_is_a_device_and_utilization_says_nothing_of_it(played) -> None:
    playing, prometheus = played
    playing.samples = {
        ("max_over_time", UTILIZATION): [(SLICE, 1.0)],
        ("max_over_time", ENGINE): [(SLICE, 0.0)],
        ("count_over_time", ENGINE): [(SLICE, 60)],
    }

    (device,) = (await prometheus.window(3600)).devices[KEY]

    assert (device.name, device.used, device.known) == (("GPU-1", "3"), 0.0, 1.0)


async def test_if_one_metric_says_that_a_gpu_is_used_it_is(played) -> None:
    playing, prometheus = played
    playing.samples = {
        ("max_over_time", UTILIZATION): [(ANN, 0.9)],
        ("max_over_time", ENGINE): [(ANN, 0.0)],
        ("count_over_time", ENGINE): [(ANN, 60)],
    }

    (device,) = (await prometheus.window(3600)).devices[KEY]

    assert device.used == 0.9


@pytest.mark.parametrize("value", ["NaN", math.nan, "what", ""])
async def test_what_is_no_number_says_nothing(value: object, played) -> None:
    playing, prometheus = played
    playing.samples = {("max_over_time", ENGINE): [(ANN, value)]}

    assert not (await prometheus.window(3600)).devices


@pytest.mark.parametrize("value", ["+Inf", 1e300, 1.5])
async def test_more_than_all_of_a_gpu_is_all_of_it(value: object, played) -> None:
    playing, prometheus = played
    playing.samples = {("max_over_time", ENGINE): [(ANN, value)]}

    (device,) = (await prometheus.window(3600)).devices[KEY]

    assert device.used == 1


async def test_gpus_without_a_pod_are_nobodys(played) -> None:
    playing, prometheus = played
    playing.samples = {("max_over_time", ENGINE): [({"UUID": "GPU-9", "pod": ""}, 0.0)]}

    assert not (await prometheus.window(3600)).devices


async def test_a_window_is_looked_at_in_steps_of_at_least_five_seconds(played) -> None:
    playing, prometheus = played

    await prometheus.window(60)
    await prometheus.window(7200)

    assert any("[60s:5s]" in it for it in playing.queries)
    assert any("[7200s:120s]" in it for it in playing.queries)


@pytest.mark.parametrize(
    "also",
    [
        {"warnings": ["remote_read: remote server returned HTTP status 503"]},
        {"isPartial": True},
    ],
    ids=["Prometheus and Thanos", "VictoriaMetrics"],
)
async def test_an_answer_that_calls_itself_incomplete_is_not_known(also, played) -> None:
    playing, prometheus = played
    playing.samples = {("_over_time", ENGINE): [(ANN, 0.0)]}
    playing.also = also

    with pytest.raises(UseUnknownError, match=r"127\.0\.0\.1.*incomplete"):
        await prometheus.window(3600)


@pytest.mark.parametrize(
    "also",
    [{"infos": ["PromQL info: metric might not be a counter"]}, {"warnings": []},
     {"warnings": None}, {"isPartial": False}],
)  # fmt: skip
async def test_an_answer_with_notes_only_is_complete(also, played) -> None:
    playing, prometheus = played
    playing.samples = {("max_over_time", ENGINE): [(ANN, 0.5)]}
    playing.also = also

    assert (await prometheus.window(3600)).devices[KEY]


async def test_only_series_with_the_given_labels_are_asked_for(played) -> None:
    """Another cluster may have a pod of the same namespace and name."""
    playing, prometheus = played
    labels = {"cluster": "prod", "site": '"}\\\né😀'}

    await Prometheus(prometheus._address, labels).window(3600)

    named = r"""{cluster="prod",site="\"}\\\né😀"}"""
    selected = (f"{ENGINE}{named}[", f"{ENGINE}{named} >", f"{UTILIZATION}{named}[",
                f"{UTILIZATION}{named} >")  # fmt: skip
    assert [it in query for it, query in zip(selected, playing.queries, strict=True)] == 4 * [True]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b'{"data": {"result": [{"metric": 1}]}}',
        b"\xff",
        pytest.param(b'{"more": ' + b"[" * 20_000, id="deep"),
    ],
)
async def test_an_answer_that_nobody_can_read_is_not_known(body: bytes, played) -> None:
    playing, prometheus = played
    playing.body = body

    with pytest.raises(UseUnknownError, match=r"127\.0\.0\.1"):
        await prometheus.window(3600)


async def test_an_error_or_no_answer_is_not_known(played) -> None:
    playing, prometheus = played
    playing.status = 503
    with pytest.raises(UseUnknownError, match="503"):
        await prometheus.window(3600)

    with pytest.raises(UseUnknownError):
        await Prometheus("http://127.0.0.1:1").window(3600)


@pytest.mark.parametrize(
    ("written", "sent"),
    [("hub:a%2Fb%40", b"hub:a/b@"), ("hub%40x", b"hub@x:"), ("hub:", b"hub:")],
)
async def test_a_name_and_a_password_are_sent_as_they_are(
    written: str, sent: bytes, played
) -> None:
    playing, prometheus = played
    named = Prometheus(prometheus._address.replace("//", f"//{written}@"))

    await named.window(60)

    assert b64decode(playing.asked_by.removeprefix("Basic ")) == sent


async def test_a_password_in_the_address_is_in_no_log(played) -> None:
    playing, prometheus = played
    playing.status = 401
    named = Prometheus(prometheus._address.replace("//", "//hub:secret@"))

    with pytest.raises(UseUnknownError, match="401") as caught:
        await named.window(3600)

    assert "secret" not in str(caught.value)

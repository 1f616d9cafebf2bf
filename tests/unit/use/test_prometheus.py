"""DCGM exporter's metrics, as Prometheus answers, become the use of devices by pod."""

import json
import math
from base64 import b64decode
from urllib.parse import parse_qs

import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler

from gpuspawner.use.prometheus import ENGINE, UTILIZATION, Prometheus, UseUnknownError

ANN = {"pod": "jupyter-ann", "namespace": "hub", "UUID": "GPU-1"}
EXPORTED = {"exported_pod": "jupyter-ann", "exported_namespace": "hub", "UUID": "GPU-1",
            "pod": "dcgm-exporter-x", "namespace": "gpu-operator"}  # fmt: skip
SLICE = {**ANN, "GPU_I_ID": "3", "GPU_I_PROFILE": "1g.5gb"}
KEY = "hub", "jupyter-ann"
AT = 1_800_000_000.5


class Played:
    """A Prometheus that answers each kind of query with what a test says.

    Attributes:
        prometheus: How the hub asks it.
        samples: The labels and the value by the function and the metric of a query. Who has had a
            device in a window has it now, unless a test says of `last_over_time` who has.
        status: Of its answers.
        also: What its answers say beside the data.
        login: The header with the name and the password of the last query.
    """

    def __init__(self, address):
        self.address, self.prometheus = address, Prometheus(f"http://{address}")
        self.samples, self.also, self.queries = {}, {}, []
        self.status, self.body, self.login = 200, None, ""

    def answer(self, query):
        self.queries.append(query)
        if self.body is not None:
            return self.body
        if ("last_over_time", ENGINE) not in self.samples:
            query = query.replace("last_over_time", "max_over_time")
        found = [
            {"metric": labels, "value": [AT, str(value)]}
            for (function, metric), *several in self.samples.items()
            if function in query and metric in query
            for it in several
            for labels, value in (it if isinstance(it, list) else [it])
        ]
        data = {"resultType": "vector", "result": found}
        return json.dumps({"status": "success", "data": data, **self.also}).encode()

    async def devices(self):
        """Return what the hub reads of the devices of ann's server."""
        return (await self.prometheus.window(3600)).devices.get(KEY)


@pytest.fixture
async def played():
    class Query(RequestHandler):
        def post(self):
            playing.login = self.request.headers.get("Authorization", "")
            query = parse_qs(self.request.body.decode())["query"][0]
            self.set_status(playing.status)
            self.finish(playing.answer(query))

    server = HTTPServer(Application([("/api/v1/query", Query)]))
    socket, port = bind_unused_port()
    server.add_sockets([socket])
    playing = Played(f"127.0.0.1:{port}")
    yield playing
    server.stop()
    await server.close_all_connections()


@pytest.mark.parametrize("labels", [ANN, EXPORTED], ids=["honoured labels", "exported labels"])
async def test_a_device_is_its_pods_however_prometheus_scrapes(labels, played):
    played.samples = {
        ("max_over_time", ENGINE): (labels, 0.5),
        ("count_over_time", ENGINE): (labels, 30),
    }

    window = await played.prometheus.window(3600)

    (device,) = window.devices[KEY]
    assert (device.used, device.known) == (0.5, 0.5)
    assert (window.seconds, window.until) == (3600, AT)


@pytest.mark.parametrize(
    ("labels", "name", "used"),
    [(ANN, ("GPU-1", ""), 0.9), (SLICE, ("GPU-1", "3"), 0.0)],
    ids=["a GPU is used if one metric says so", "of a slice, utilization says nothing"],
)
async def test_what_two_metrics_say_of_a_device(labels, name, used, played):
    played.samples = {
        ("max_over_time", UTILIZATION): (labels, 0.9),
        ("max_over_time", ENGINE): (labels, 0.0),
        ("count_over_time", ENGINE): (labels, 60),
    }

    (device,) = await played.devices()

    assert (device.name, device.used, device.known) == (name, used, 1.0)


async def test_a_gpu_that_somebody_else_had_before_is_not_shared(played):
    """Nor is one that was free before, if Prometheus doesn't honour the exporter's labels."""
    free = {"UUID": "GPU-1", "pod": "dcgm-exporter-x", "namespace": "gpu-operator"}
    bobs = {**ANN, "pod": "jupyter-bob"}
    played.samples = {
        ("max_over_time", ENGINE): [(EXPORTED, 0.9), (bobs, 0.4), (free, 0.0)],
        ("last_over_time", ENGINE): (EXPORTED, 0.9),
    }

    window = await played.prometheus.window(3600)

    assert list(window.devices) == [KEY]
    assert not window.shared
    assert any("[300s]" in it for it in played.queries)


async def test_a_gpu_that_a_pod_of_the_same_name_had_before_is_not_the_server_s(played):
    played.samples = {
        ("max_over_time", ENGINE): [(ANN, 0.9), ({**ANN, "UUID": "GPU-2"}, 0.4)],
        ("last_over_time", ENGINE): ({**ANN, "UUID": "GPU-2"}, 0.0),
    }

    (device,) = await played.devices()

    assert (device.name, device.used) == (("GPU-2", ""), 0.4)


@pytest.mark.parametrize("value", ["NaN", math.nan, "what", ""])
async def test_what_is_no_number_says_nothing(value, played):
    played.samples = {("max_over_time", ENGINE): (ANN, value)}

    assert not await played.devices()


@pytest.mark.parametrize("value", ["+Inf", 1e300, 1.5])
async def test_more_than_all_of_a_gpu_is_all_of_it(value, played):
    played.samples = {("max_over_time", ENGINE): (ANN, value)}

    (device,) = await played.devices()

    assert device.used == 1


async def test_gpus_without_a_pod_are_nobodys(played):
    played.samples = {("max_over_time", ENGINE): ({"UUID": "GPU-9", "pod": ""}, 0.0)}

    assert not (await played.prometheus.window(3600)).devices


async def test_a_window_is_looked_at_in_steps_of_at_least_five_seconds(played):
    await played.prometheus.window(60)
    await played.prometheus.window(7200)

    assert any("[60s:5s]" in it for it in played.queries)
    assert any("[7200s:120s]" in it for it in played.queries)


@pytest.mark.parametrize(
    "also",
    [
        {"warnings": ["remote_read: remote server returned HTTP status 503"]},
        {"isPartial": True},
    ],
    ids=["Prometheus and Thanos", "VictoriaMetrics"],
)
async def test_an_answer_that_calls_itself_incomplete_is_not_known(also, played):
    played.samples = {("_over_time", ENGINE): (ANN, 0.0)}
    played.also = also

    with pytest.raises(UseUnknownError, match=r"127\.0\.0\.1.*incomplete"):
        await played.devices()


@pytest.mark.parametrize(
    "also",
    [{"infos": ["PromQL info: metric might not be a counter"]}, {"warnings": []},
     {"warnings": None}, {"isPartial": False}],
)  # fmt: skip
async def test_an_answer_with_notes_only_is_complete(also, played):
    played.samples = {("max_over_time", ENGINE): (ANN, 0.5)}
    played.also = also

    assert await played.devices()


async def test_only_series_with_the_given_labels_are_asked_for(played):
    """Another cluster may have a pod of the same namespace and name."""
    labels = {"cluster": "prod", "site": '"}\\\né😀'}

    await Prometheus(f"http://{played.address}", labels).window(3600)

    named = r'{cluster="prod",site="\"}\\\né😀"'
    asked = "".join(played.queries)
    selected = [asked.count(f"{it}{named}") for it in (ENGINE, UTILIZATION)]
    assert selected == [asked.count(it) for it in (ENGINE, UTILIZATION)] == [4, 4]


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
async def test_an_answer_that_nobody_can_read_is_not_known(body, played):
    played.body = body

    with pytest.raises(UseUnknownError, match=r"127\.0\.0\.1"):
        await played.devices()


async def test_no_answer_is_not_known():
    with pytest.raises(UseUnknownError):
        await Prometheus("http://127.0.0.1:1").window(3600)


@pytest.mark.parametrize(
    ("written", "sent"),
    [("hub:a%2Fb%40", b"hub:a/b@"), ("hub%40x", b"hub@x:"), ("hub:", b"hub:")],
)
async def test_a_name_and_a_password_are_sent_as_they_are(written, sent, played):
    await Prometheus(f"http://{written}@{played.address}/").window(60)

    assert b64decode(played.login.removeprefix("Basic ")) == sent


async def test_an_error_is_not_known_and_a_password_in_the_address_is_in_no_log(played):
    played.status = 401

    with pytest.raises(UseUnknownError, match="401") as caught:
        await Prometheus(f"http://hub:secret@{played.address}").window(3600)

    assert "secret" not in str(caught.value)

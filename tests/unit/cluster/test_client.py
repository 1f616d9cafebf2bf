"""Faulty configurations and answers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import ConfigException

from gpuspawner.cluster.client import Client, InTurn, RequestError, load_configuration
from tests.unit.makers.scripted import ScriptedServer, broken, failure, raw, silence


@pytest.fixture
def kubeconfig(tmp_path, monkeypatch) -> Callable[[str], None]:
    """Writes the text of the process's kubeconfig; without a call there is no kubeconfig."""
    path = tmp_path / "kubeconfig"
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(
        "kubernetes_asyncio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(path)
    )

    def write(text: str) -> None:
        path.write_text(text)

    return write


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: hub}}]
clusters: [{name: here, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: hub, user: {token: secret}}]
"""


async def test_a_kubeconfig_is_read_without_touching_the_default_of_the_process(kubeconfig) -> None:
    kubeconfig(KUBECONFIG)
    before = Configuration.get_default_copy().host

    configuration = await load_configuration()

    assert configuration.host == "https://127.0.0.1:6443"
    assert configuration.api_key == {"BearerToken": "Bearer secret"}
    assert Configuration.get_default_copy().host == before


async def test_kubespawners_traits_override_the_configuration_that_was_found(kubeconfig) -> None:
    kubeconfig(KUBECONFIG)

    configuration = await load_configuration("https://api.example:443", "/ca.crt", verify_ssl=False)

    assert configuration.host == "https://api.example:443"
    assert configuration.ssl_ca_cert == "/ca.crt"
    assert configuration.verify_ssl is False


@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "current-context: nowhere", "a: \x00", "clusters: 3"]
)
async def test_an_unusable_configuration_is_a_request_error(kubeconfig, text) -> None:
    if text is not None:
        kubeconfig(text)

    with pytest.raises(RequestError, match="no usable Kubernetes configuration"):
        await load_configuration()


@asynccontextmanager
async def client_of(**settings: Any) -> AsyncIterator[Client]:
    """A client whose configuration has these settings, and an API server that nobody reaches."""

    async def load() -> Configuration:
        configuration = Configuration(host="http://127.0.0.1:1")
        configuration.api_key["BearerToken"] = "Bearer old"
        vars(configuration).update(settings)
        return configuration

    client = Client(load)
    yield client
    await client.close()


def vanished(_: Configuration) -> None:
    raise ConfigException("Token file exists but empty.")


@pytest.mark.each_python
@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (
            {"host": "https://127.0.0.1:1", "ssl_ca_cert": "/nowhere/ca.crt"},
            "no usable Kubernetes configuration",
        ),
        ({"refresh_api_key_hook": vanished}, "Token file exists but empty"),
        ({}, "127.0.0.1:1"),
    ],
    ids=["an unreadable certificate", "a token's file that has become unreadable", "no contact"],
)
async def test_what_keeps_a_client_from_the_server_is_a_request_error(settings, told) -> None:
    async with client_of(**settings) as client:
        with pytest.raises(RequestError, match=told) as caught:
            async with client.get("/api", {}, 1):
                pass
        assert (caught.value.status, caught.value.is_away) == (None, True)
        with pytest.raises(RequestError, match=told):
            await client.post("/pods", {}, {})


@pytest.mark.each_python
async def test_a_server_that_never_begins_to_answer_is_away() -> None:
    server = ScriptedServer(things=[silence(), broken()])
    async with server.serving() as client:
        for is_away in (True, False):
            with pytest.raises(RequestError) as caught:
                async with client.get("/things", {}, 0.5) as response:
                    await response.read()
            assert (caught.value.status, caught.value.is_away) == (None, is_away)


async def proxy_page(request: web.Request) -> web.StreamResponse:
    response = await raw(b"<html>bad gateway</html>")(request)
    response.set_status(502)
    return response


@pytest.mark.parametrize(
    ("answer", "told", "status"),
    [
        (failure(403, "things is\nforbidden"), "HTTP 403: things is forbidden", 403),
        (proxy_page, "HTTP 502: Bad Gateway", 502),
    ],
    ids=["the server's message", "a proxy's page"],
)
async def test_a_refusal_says_why_and_carries_the_status(answer, told, status) -> None:
    async with ScriptedServer(things=[answer]).serving() as client:
        with pytest.raises(RequestError, match=told) as caught:
            async with client.get("/things", {}, 1):
                pass

    assert caught.value.status == status


@pytest.mark.parametrize(
    ("asked", "waited"), [("1", 1), ("3600", 60), ("9" * 500, 60), ("soon", 0), ("-1", 0), ("", 0)]
)
async def test_a_retry_after_counts_as_a_minute_at_most(asked, waited) -> None:
    """A proxy's maintenance page may ask for an hour, and the API server is back long before."""
    server = ScriptedServer(things=[failure(503, "away", **{"Retry-After": asked})])
    async with server.serving() as client:
        with pytest.raises(RequestError) as caught:
            async with client.get("/things", {}, 1):
                pass

    assert caught.value.retry_after == waited


async def test_post_returns_an_error_as_an_answer() -> None:
    server = ScriptedServer(pods=[raw(b"made"), failure(403, "no")])
    async with server.serving() as client:
        assert await client.post("/pods", {"dryRun": "All"}, {"a": 1}) == (200, b"made")
        status, body = await client.post("/pods", {}, {})

    assert status == 403
    assert b'"no"' in body
    assert server.queries == [{"dryRun": "All"}, {}]


async def test_expired_credentials_are_renewed_and_the_request_is_sent_again() -> None:
    server = ScriptedServer(pods=[failure(401), raw(b"made"), failure(401), failure(401)])
    async with server.serving() as client:
        assert await client.post("/pods", {}, {}) == (200, b"made")
        assert server.loads == 2
        assert (await client.post("/pods", {}, {}))[0] == 401


@pytest.mark.each_python
async def test_renewing_credentials_loses_no_request_in_flight() -> None:
    expired, renewed = asyncio.Event(), asyncio.Event()

    async def waits(_: web.Request) -> web.StreamResponse:
        expired.set()
        await renewed.wait()
        raise AssertionError("its connection was closed")

    server = ScriptedServer(slow=[waits, raw(b"made")], pods=[failure(401), raw(b"made")])
    async with server.serving() as client:
        slow = asyncio.ensure_future(client.post("/slow", {}, {}))
        await expired.wait()
        assert await client.post("/pods", {}, {}) == (200, b"made")

        assert await slow == (200, b"made")


async def test_no_two_configurations_are_made_in_one_round_of_the_event_loop() -> None:
    rounds, made_in = [0], []

    async def load() -> Configuration:
        made_in.append(rounds[0])
        return Configuration()

    async def count() -> None:
        while len(made_in) < 5:
            rounds[0] += 1
            await asyncio.sleep(0)

    in_turn = InTurn(load)
    await asyncio.gather(count(), *(in_turn() for _ in range(5)))

    assert len(set(made_in)) == 5


async def test_after_a_configuration_that_cannot_be_made_the_next_one_is_tried() -> None:
    asked = iter([RequestError("no kubeconfig"), None])

    async def load() -> Configuration:
        if error := next(asked):
            raise error
        return Configuration()

    in_turn = InTurn(load)
    with pytest.raises(RequestError):
        await in_turn()

    assert isinstance(await in_turn(), Configuration)

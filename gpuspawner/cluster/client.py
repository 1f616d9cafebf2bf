"""Raw requests to the API server, by clients that KubeSpawner doesn't share.

KubeSpawner's ``load_config`` writes the process-wide default configuration of kubernetes_asyncio,
and its clients live as long as the hub. The view's and the dry runs' own clients can be closed, and
rebuilt when credentials expire, and they take no connection from a server that is starting.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

import aiohttp
import msgspec
from kubernetes_asyncio import config
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.client.rest import ApiException
from kubernetes_asyncio.config import ConfigException

from gpuspawner.kube.quoting import one_line

GONE = 410
"""The HTTP status for a version whose later history is lost."""

ConfigurationFactory = Callable[[], Awaitable[Configuration]]

_CONNECT_SECONDS = 10.0
# A proxy's maintenance page may ask for an hour, and the API server is back long before.
_LONGEST_WAIT = 60.0
# Without Retry-After, proxies answer so for a server that is away; so does an API server whose own
# time for a request is up (504).
_OF_PROXIES = frozenset({502, 503, 504})
# An error's body is a Status object of a few hundred bytes; a proxy's error page may be anything.
_ERROR_BYTES = 16 * 1024


class RequestError(Exception):
    """A request got no usable answer.

    Attributes:
        status: The HTTP status (for an ERROR event, its code); None if there was no answer.
        retry_after: Seconds that the server asked to wait, at most 60; 0 if it didn't ask.
        is_away: Whether the server is out of reach: no answer began, for whatever reason, or the
            answer is like that of a proxy in front of the server.
    """

    def __init__(
        self,
        text: str,
        status: int | None = None,
        retry_after: float = 0.0,
        *,
        is_away: bool = False,
    ) -> None:
        super().__init__(one_line(text))
        self.status = status
        self.retry_after = retry_after
        self.is_away = is_away

    def alone(self) -> "RequestError":
        """Return the error without cause and traceback, whose frames hold the data."""
        return RequestError(str(self), self.status, self.retry_after, is_away=self.is_away)


class Status(msgspec.Struct, gc=False):
    """The fields of a ``meta/v1`` Status object that we read."""

    message: str = ""
    code: int | None = None


async def load_configuration(
    host: str = "", ssl_ca_cert: str = "", verify_ssl: bool | None = None
) -> Configuration:
    """Find the API server as KubeSpawner does: service account first, else kubeconfig.

    The arguments are KubeSpawner's ``k8s_api_...`` traits; an empty one keeps what was found.

    Raises:
        RequestError: There is neither, or it can't be read.
    """
    configuration = Configuration()
    try:
        try:
            config.load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=configuration
            )
        except ConfigException:
            await config.load_kube_config(client_configuration=configuration)
    except Exception as error:
        # The loaders raise what YAML, the file system, base64 and exec plugins raise.
        raise _unusable(error) from error
    if host:
        configuration.host = host
    if ssl_ca_cert:
        configuration.ssl_ca_cert = ssl_ca_cert
    if verify_ssl is not None:
        configuration.verify_ssl = verify_ssl
    return configuration


class InTurn:
    """Makes configurations for many clients, no two in one round of the event loop.

    Their certificates take some milliseconds each, and a view has fifteen clients.
    """

    def __init__(self, load: ConfigurationFactory) -> None:
        self._load = load
        self._loading = asyncio.Lock()

    async def __call__(self) -> Configuration:
        """Make one, in a later round than the one before."""
        async with self._loading:
            made = await self._load()
            await asyncio.sleep(0)
            return made


class Client:
    """Sends requests over its own connection pool.

    Each kind of object has its own client, so renewing the credentials of one breaks no other.

    Args:
        load: Makes the configuration, for the first request and again after a 401, which renews
            a kubeconfig's expired token. (The configuration itself rereads a service account's
            token file every minute.)
        connections: The most connections at a time; None for the configuration's own limit.
    """

    def __init__(
        self, load: ConfigurationFactory = load_configuration, connections: int | None = None
    ) -> None:
        self._load = load
        self._connections = connections
        self._loading = asyncio.Lock()
        self._api: ApiClient | None = None

    @asynccontextmanager
    async def get(
        self, path: str, query: Mapping[str, str], silence: float, encoding: str = "identity"
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield a successful response, its body unread; leaving the context closes it.

        The caller reads one response at a time. Reading fails after `silence` seconds without a
        byte. `encoding` is how the body may be compressed; aiohttp decompresses it.

        Raises:
            RequestError: There was no contact or a status other than 2xx, or the connection broke
                or fell silent while the caller read.
        """
        timeout = aiohttp.ClientTimeout(
            connect=_CONNECT_SECONDS, sock_connect=_CONNECT_SECONDS, sock_read=silence
        )
        headers = {"Accept-Encoding": encoding}
        has_answered = False
        try:
            api = await self._connected()
            response = await _asked(api, "GET", path, query, headers, _request_timeout=timeout)
            has_answered = True
            try:
                if response.status >= 300:
                    raise await self._refusal(response)
                yield response
            finally:
                response.close()
        except ConfigException as error:  # the token's file has become unreadable
            raise RequestError(str(error), is_away=True) from error
        except TimeoutError as error:
            text = f"no answer within {silence:.0f} s"
            raise RequestError(text, is_away=not has_answered) from error
        except (aiohttp.ClientError, OSError) as error:
            text = str(error) or type(error).__name__
            raise RequestError(text, is_away=not has_answered) from error

    async def serves(self, path: str, silence: float) -> bool:
        """Whether there is a successful response to a GET."""
        try:
            async with self.get(path, {}, silence):
                return True
        except RequestError:
            return False

    async def post(
        self, path: str, query: Mapping[str, str], body: Mapping[str, object]
    ) -> tuple[int, bytes]:
        """Return the status and the body of the answer, even if it is an error.

        After a 401 it asks again with new credentials. Requests may run in parallel.

        Raises:
            RequestError: There was no contact, or the connection broke.
        """
        return await self._send("POST", path, query, body)

    async def delete(self, path: str) -> int:
        """Return the status of the answer, as `post` does."""
        status, _ = await self._send("DELETE", path, {}, {})
        return status

    async def _send(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, object]
    ) -> tuple[int, bytes]:
        for renewed in (False, True):
            api = await self._connected()
            try:
                answer = await _asked(
                    api, method, path, query, {"Content-Type": "application/json"}, body=body
                )
                status, said = answer.status, await answer.read()
            except (ApiException, ConfigException, aiohttp.ClientError, OSError) as error:
                # Another request may have closed the connections to renew the credentials.
                if renewed or api is self._api:
                    raise RequestError(str(error) or type(error).__name__) from error
                continue
            if status != HTTPStatus.UNAUTHORIZED or renewed:
                break
            if api is self._api:
                await self.close()
        return status, said

    async def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        api, self._api = self._api, None
        if api is not None:
            await api.close()

    async def _connected(self) -> ApiClient:
        async with self._loading:
            if self._api is None:
                configuration = await self._load()
                if self._connections is not None:
                    configuration.connection_pool_maxsize = self._connections
                self._api = _api_client(configuration)
            return self._api

    async def _refusal(self, response: aiohttp.ClientResponse) -> RequestError:
        body = await response.content.read(_ERROR_BYTES)
        try:
            text = msgspec.json.decode(body, type=Status).message
        except msgspec.MsgspecError:
            text = ""
        if response.status == 401:
            await self.close()
        seconds = _seconds(response.headers.get("Retry-After", ""))
        return RequestError(
            f"HTTP {response.status}: {text or response.reason}",
            response.status,
            seconds,
            is_away=response.status in _OF_PROXIES and not seconds,
        )


async def _asked(
    api: ApiClient,
    method: str,
    path: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    **more: Any,
) -> aiohttp.ClientResponse:
    answer: aiohttp.ClientResponse = await api.call_api(
        path,
        method,
        query_params=list(query.items()),
        header_params={"Accept": "application/json", **headers},
        auth_settings=["BearerToken"],
        _preload_content=False,
        **more,
    )
    return answer


class _PlainClient(ApiClient):
    """A client whose bodies are plain already, so nothing is copied to make them plain."""

    def sanitize_for_serialization(self, obj: object) -> object:
        return obj


def _api_client(configuration: Configuration) -> ApiClient:
    try:
        return _PlainClient(configuration)
    except OSError as error:  # an unreadable certificate, ssl.SSLError included
        raise _unusable(error) from error


def _unusable(error: Exception) -> RequestError:
    return RequestError(f"no usable Kubernetes configuration: {error}", is_away=True)


def _seconds(text: str) -> float:
    return min(float(text), _LONGEST_WAIT) if text.isascii() and text.isdigit() else 0.0

"""A hub's REST API, as a script of its administrator calls it."""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.simple_httpclient import SimpleAsyncHTTPClient

_AS_LONG_AS_IT_TAKES = 0.0
"""For a start: the hub ends it after `start_timeout`."""


class HubApiError(Exception):
    """The hub gave no answer, or one that isn't a success.

    Attributes:
        status: The HTTP status, or a similar one if there was none.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class NoHubError(HubApiError):
    """Nothing answers at this address as a hub does."""


class HubApi:
    """Calls the REST API with a token.

    Args:
        url: The API's address, which ends with ``/hub/api``.
        token: A token of the hub.
    """

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}
        self._client = SimpleAsyncHTTPClient(force_instance=True)

    async def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """Send a request; return the answer's JSON, or None if it has none.

        Raises:
            HubApiError: It was no success.
        """
        answer = await self._send(method, path, json.dumps(body) if body is not None else None)
        try:
            return json.loads(answer) if answer else None
        except ValueError as error:
            text = f"{self._url} isn't the address of a hub's REST API"
            raise NoHubError(HTTPStatus.BAD_GATEWAY, text) from error

    async def follow(self, path: str, tell: Callable[[str], None]) -> Mapping[str, Any]:
        """Tell each new message of a progress stream, and return its last event, if there was any.

        Raises:
            HubApiError: There was no stream.
        """
        rest, last = b"", dict[str, Any]()

        def hear(chunk: bytes) -> None:
            nonlocal rest, last
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.startswith(b"data:"):
                    event = json.loads(line.removeprefix(b"data:"))
                    if event["message"] != last.get("message"):
                        tell(event["message"])
                    last = event

        await self._send("GET", path, None, hear)
        return last

    async def _send(
        self,
        method: str,
        path: str,
        body: str | None,
        hear: Callable[[bytes], None] | None = None,
    ) -> bytes:
        request = HTTPRequest(
            f"{self._url}{path}",
            method=method,
            headers=self._headers,
            body=body,
            allow_nonstandard_methods=True,  # a POST and a DELETE may have no body, or one
            request_timeout=_AS_LONG_AS_IT_TAKES,
            streaming_callback=hear,
        )
        try:
            return (await self._client.fetch(request)).body
        except HTTPClientError as error:
            said = _message(error.response.body if error.response else b"") or error.message
            raise HubApiError(error.code, f"HTTP {error.code}: {said}") from error
        except (OSError, ValueError) as error:
            text = f"{self._url} doesn't answer: {error}"
            raise NoHubError(HTTPStatus.SERVICE_UNAVAILABLE, text) from error


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, TypeError, LookupError):
        return ""

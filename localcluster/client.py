"""A small synchronous client of the API server, for localcluster and the tests."""

import http.client
import json
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localcluster.errors import LocalClusterError

#: An object of the Kubernetes API as plain data.
Object = dict[str, Any]

_CONTENT_TYPES = {"PATCH": "application/merge-patch+json"}
_BUSY_ANSWERS = 10
"""How often a request is sent again that a busy server didn't take; client-go does so too."""


class ApiError(LocalClusterError):
    """The API server answered with an error.

    Attributes:
        status: the HTTP status, such as 404.
        reason: the reason as Kubernetes writes it, such as ``NotFound``.
        retry_after: the seconds after which the client may ask again.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class Client:
    """A client of one API server, as one user.

    Args:
        url: such as ``https://127.0.0.1:21001``.
        ca: file with the certificate of the server's CA.
        token: the user's bearer token.
    """

    def __init__(self, url: str, ca: Path, token: str) -> None:
        self._host = urlsplit(url).netloc
        self._ca = ca
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._connection: http.client.HTTPSConnection | None = None

    def get(self, path: str) -> Object:
        """Read the object or list at this path, which may have a query."""
        return self._request("GET", path)

    def items(self, path: str) -> list[Object]:
        """Read the list at this path and return its items."""
        items: list[Object] = self._request("GET", path)["items"]
        return items

    def create(self, path: str, body: Object) -> Object:
        """POST an object to a list's path."""
        return self._request("POST", path, body)

    def replace(self, path: str, body: Object) -> Object:
        """PUT an object."""
        return self._request("PUT", path, body)

    def patch(self, path: str, body: Object) -> Object:
        """Change an object by a JSON merge patch."""
        return self._request("PATCH", path, body)

    def delete(self, path: str, grace: int | None = None) -> Object:
        """Delete an object; ``grace`` is its grace period in seconds."""
        options = {} if grace is None else {"gracePeriodSeconds": grace}
        return self._request("DELETE", path, options)

    def is_ready(self) -> bool:
        """Return whether the API server answers that it is ready."""
        try:
            self._send("GET", "/readyz", None)
        except (OSError, http.client.HTTPException, ApiError):
            return False
        return True

    def _request(self, method: str, path: str, body: Object | None = None) -> Object:
        answer: Object = json.loads(self._send_until_taken(method, path, body))
        return answer

    def _send_until_taken(self, method: str, path: str, body: Object | None) -> bytes:
        """Send a request, and again after each 429, with which the server says when to come back.

        It answers so while it prepares the storage of a new CRD.
        """
        for _ in range(_BUSY_ANSWERS):
            try:
                return self._send(method, path, body)
            except ApiError as error:
                if error.status != 429:
                    raise
                time.sleep(error.retry_after)
        return self._send(method, path, body)

    def _send(self, method: str, path: str, body: Object | None) -> bytes:
        data = None if body is None else json.dumps(body)
        content_type = _CONTENT_TYPES.get(method, "application/json")
        headers = {**self._headers, "Content-Type": content_type}
        reused = self._connection is not None
        connection = self._connection or self._connect()
        self._connection = None
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            if not reused:
                raise
            # The server may have closed the connection, for example when it restarted.
            return self._send(method, path, body)
        self._connection = connection
        if response.status >= 400:
            raise _error(response, answer)
        return answer

    def _connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self._ca))
        return http.client.HTTPSConnection(self._host, timeout=30, context=context)


@contextmanager
def unless_gone() -> Iterator[None]:
    """Go on if the object doesn't exist, or no longer."""
    try:
        yield
    except ApiError as error:
        if error.status != 404:
            raise


@contextmanager
def unless_there() -> Iterator[None]:
    """Go on if the object exists already."""
    try:
        yield
    except ApiError as error:
        if error.status != 409:
            raise


def _error(response: http.client.HTTPResponse, answer: bytes) -> ApiError:
    retry_after = float(response.headers.get("Retry-After") or 0)
    try:
        told = json.loads(answer)
        reason, message = str(told.get("reason", "")), str(told.get("message", ""))
    except (ValueError, AttributeError):
        reason, message = "", answer.decode(errors="replace")[:500]
    return ApiError(response.status, reason, message, retry_after)

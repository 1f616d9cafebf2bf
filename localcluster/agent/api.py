"""The agent's client of the API server: requests that survive its restarts, and a watch."""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from localcluster import kubeconfig

log = logging.getLogger(__name__)

#: An object of the Kubernetes API as plain data.
Object = dict[str, Any]

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_RETRY_AFTER = 0.5
_WATCH_SECONDS = 300


class ApiError(Exception):
    """The API server refused a request, with this HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class ChangeKind(Enum):
    """What happened to an object."""

    PUT = "it is there, new or changed"
    GONE = "it is no longer there"


@dataclass(frozen=True)
class Change:
    """An object that came, changed or went."""

    kind: ChangeKind
    object: Object


class Api:
    """A client of the API server that a kubeconfig with a token names."""

    def __init__(self, path: Path) -> None:
        access = kubeconfig.read(path)
        self._url = access.url
        self._headers = {"Authorization": f"Bearer {access.token}"}
        self._ssl = ssl.create_default_context(cafile=access.ca)

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            self._url,
            headers=self._headers,
            connector=aiohttp.TCPConnector(ssl=self._ssl, limit=50),
            timeout=aiohttp.ClientTimeout(total=30),
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Object:
        """Read an object or a list."""
        return await self._request("GET", path, query=query)

    async def create(self, path: str, body: Object) -> Object:
        """POST an object to a list's path."""
        return await self._request("POST", path, body)

    async def replace(self, path: str, body: Object) -> Object:
        """PUT an object."""
        return await self._request("PUT", path, body)

    async def patch(self, path: str, body: Object, content_type: str = MERGE) -> Object:
        """Change an object by a patch of this type."""
        return await self._request("PATCH", path, body, content_type)

    async def delete(self, path: str, options: Object) -> Object:
        """Delete an object."""
        return await self._request("DELETE", path, options)

    async def _request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """Send the request until the server answers: it may be restarting."""
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type}
        while True:
            try:
                async with self._session.request(
                    method, path, data=data, headers=headers, params=query
                ) as response:
                    answer = await response.read()
            except (aiohttp.ClientError, TimeoutError) as error:
                log.warning("%s %s: %s; trying again", method, path, error)
                await asyncio.sleep(_RETRY_AFTER)
                continue
            if response.status < 400:
                return _object(answer)
            if response.status not in (429, 500, 503, 504):
                raise ApiError(response.status, answer.decode(errors="replace")[:500])
            log.warning("%s %s: HTTP %s; trying again", method, path, response.status)
            await asyncio.sleep(_RETRY_AFTER)

    async def follow(self, path: str, query: Mapping[str, str]) -> AsyncIterator[Change]:
        """Yield every object of a list and then each change, forever.

        Objects that were deleted while the watch was interrupted are yielded as GONE.
        """
        known: dict[str, Object] = {}
        while True:
            listing = await self.get(path, query)
            present = {item["metadata"]["uid"]: item for item in listing["items"]}
            for uid in known.keys() - present.keys():
                yield Change(ChangeKind.GONE, known.pop(uid))
            for uid, item in present.items():
                known[uid] = item
                yield Change(ChangeKind.PUT, item)
            version = listing["metadata"]["resourceVersion"]
            try:
                async for change in self._watch(path, query, version):
                    uid = change.object["metadata"]["uid"]
                    if change.kind is ChangeKind.GONE:
                        known.pop(uid, None)
                    else:
                        known[uid] = change.object
                    yield change
            except (aiohttp.ClientError, TimeoutError) as error:
                log.warning("watch of %s: %s; listing again", path, error)
                await asyncio.sleep(_RETRY_AFTER)

    async def _watch(
        self, path: str, query: Mapping[str, str], version: str
    ) -> AsyncIterator[Change]:
        """Yield changes after this version, until the server ends the watch."""
        asked = {"watch": "1", "resourceVersion": version, "timeoutSeconds": str(_WATCH_SECONDS)}
        timeout = aiohttp.ClientTimeout(total=_WATCH_SECONDS + 30, sock_connect=10)
        async with self._session.get(path, params={**query, **asked}, timeout=timeout) as response:
            if response.status != 200:
                log.warning("watch of %s: HTTP %s; listing again", path, response.status)
                return
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return
                    is_gone = event["type"] == "DELETED"
                    kind = ChangeKind.GONE if is_gone else ChangeKind.PUT
                    yield Change(kind, event["object"])


def _object(answer: bytes) -> Object:
    parsed: Object = json.loads(answer)
    return parsed

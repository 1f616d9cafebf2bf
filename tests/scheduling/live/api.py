"""A minimal client of an API server, for thousands of requests a minute; it raises all errors."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp
import msgspec

Plain = dict[str, Any]
T = TypeVar("T")

_GROUPS = {
    "api/v1": (
        "namespaces",
        "nodes",
        "pods",
        "persistentvolumeclaims",
        "persistentvolumes",
    ),
    "apis/storage.k8s.io/v1": (
        "storageclasses",
        "csinodes",
        "csidrivers",
        "csistoragecapacities",
        "volumeattachments",
    ),
    "apis/scheduling.k8s.io/v1": ("priorityclasses",),
    "apis/node.k8s.io/v1": ("runtimeclasses",),
    "apis/resource.k8s.io/v1": ("deviceclasses",),
}
GROUP_OF = {plural: group for group, plurals in _GROUPS.items() for plural in plurals}
NAMESPACED = frozenset({"pods", "persistentvolumeclaims", "csistoragecapacities"})


TOO_BUSY = (429, 504)
PAUSES = (1.0, 2.0, 4.0)  # seconds


class RefusedError(Exception):
    """The API server answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


@dataclass
class Api:
    """One client of one API server."""

    server: str
    session: aiohttp.ClientSession

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, server: str, token: str, certificate_authority: str | None = None
    ) -> AsyncIterator[Api]:
        """Connect. Without a certificate authority, accept any certificate (loopback only)."""
        tls = ssl.create_default_context(cafile=certificate_authority)
        if certificate_authority is None:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=16, ssl=tls),
            headers={"Authorization": f"Bearer {token}"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        ) as session:
            yield cls(server, session)

    def path(self, plural: str, namespace: str | None = None, name: str = "") -> str:
        place = f"namespaces/{namespace}/" if namespace else ""
        tail = f"/{name}" if name else ""
        return f"{self.server}/{GROUP_OF[plural]}/{place}{plural}{tail}"

    def path_of(self, plural: str, made: Plain) -> str:
        metadata = made["metadata"]
        return self.path(plural, metadata.get("namespace"), metadata["name"])

    async def request(
        self,
        method: str,
        url: str,
        body: Plain | None = None,
        content_type: str = "application/json",
        **parameters: str,
    ) -> Plain:
        """Send one request; repeat it while the API server is too busy.

        Raises:
            RefusedError: the API server refused it.
        """
        for pause in PAUSES:
            try:
                return await self._once(method, url, body, content_type, parameters)
            except RefusedError as refused:
                if refused.status not in TOO_BUSY:
                    raise
                await asyncio.sleep(pause)
        return await self._once(method, url, body, content_type, parameters)

    async def _once(
        self,
        method: str,
        url: str,
        body: Plain | None,
        content_type: str,
        parameters: dict[str, str],
    ) -> Plain:
        async with self.session.request(
            method,
            url,
            data=None if body is None else msgspec.json.encode(body),
            headers={"Content-Type": content_type},
            params=parameters,
        ) as response:
            answer: Plain = msgspec.json.decode(await response.read())
            if response.status >= 400:
                raise RefusedError(response.status, str(answer.get("message")))
            return answer

    async def create(self, plural: str, made: Plain, **parameters: str) -> Plain:
        url = self.path(plural, made["metadata"].get("namespace"))
        return await self.request("POST", url, made, **parameters)

    async def patch(self, url: str, change: Plain) -> Plain:
        return await self.request("PATCH", url, change, "application/merge-patch+json")

    async def delete(self, url: str, grace_seconds: int | None = 0) -> Plain:
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        return await self.request("DELETE", url, options)

    async def items(self, plural: str) -> list[Plain]:
        return list((await self.request("GET", self.path(plural)))["items"])

    async def events(self, plural: str) -> AsyncIterator[tuple[str, Plain]]:
        """Yield every existing object, then every change, such as ("ADDED", object)."""
        listed = await self.request("GET", self.path(plural))
        for each in listed["items"]:
            yield "ADDED", each
        parameters = {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
        async with self.session.get(
            self.path(plural), params=parameters, read_bufsize=2**22
        ) as stream:
            async for line in stream.content:
                event = msgspec.json.decode(line)
                if event["type"] == "ERROR":
                    raise RefusedError(event["object"]["code"], event["object"]["message"])
                yield event["type"], event["object"]


class Seen:
    """The newest version of each object of one kind, from a watch."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Plain] = {}
        self._changed = asyncio.Event()

    async def follow(self, api: Api, plural: str) -> None:
        async for change, made in api.events(plural):
            key = made["metadata"].get("namespace", ""), made["metadata"]["name"]
            if change == "DELETED":
                self.objects.pop(key, None)
            else:
                self.objects[key] = made
            self._changed.set()
            self._changed = asyncio.Event()

    async def until(self, find: Callable[[], T | None], seconds: float = 30) -> T:
        """Wait until `find` returns a result; call it after each change."""
        async with asyncio.timeout(seconds):
            while (found := find()) is None:
                await self._changed.wait()
        return found

"""A proxy to the real API server that adds undecodable pods and cuts watches off."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp
from aiohttp import web

from localcluster import LocalCluster
from localcluster import kubeconfig as kubeconfigs

# All on a node that doesn't exist, so that no verdict depends on them.
ELSEWHERE: list[dict[str, object]] = [
    {"metadata": {"name": "containers", "namespace": "odd"}, "spec": {"containers": 5}},
    {"metadata": {"name": "labels", "namespace": "odd", "labels": ["a"]}, "spec": {}},
    {"metadata": {"name": "volumes", "namespace": "odd"}, "spec": {"volumes": [None]}},
    {
        "metadata": {"name": "large", "namespace": "odd", "annotations": {"x": "x" * 10_000_000}},
        "spec": {"containers": None},
    },
]
for _pod in ELSEWHERE:
    _pod["spec"]["nodeName"] = "elsewhere"  # type: ignore[index]

TORN_AFTER = 2.0


class UndecodableApi:
    """Passes every request on, and changes the answers about pods of all namespaces."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url
        self._session = session

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Ask the API server, and pass on its answer, with undecodable pods if it lists pods."""
        headers = {
            name: request.headers[name]
            for name in ("Authorization", "Accept", "Content-Type")
            if name in request.headers
        }
        body = await request.read()
        asked = self._session.request(
            request.method, self._url + request.raw_path, headers=headers, data=body
        )
        async with asked as answer:
            about_pods = request.path == "/api/v1/pods" and answer.status == 200
            if about_pods and "watch" not in request.query:
                return web.json_response(_with_undecodable_items(await answer.json()))
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            await self._stream(answer, response, torn=about_pods)
            return response

    async def _stream(
        self, answer: aiohttp.ClientResponse, response: web.StreamResponse, *, torn: bool
    ) -> None:
        if torn:
            for pod in ELSEWHERE[:3]:
                await response.write(json.dumps({"type": "MODIFIED", "object": pod}).encode())
                await response.write(b"\n")
        try:
            async with asyncio.timeout(TORN_AFTER if torn else None):
                async for piece in answer.content.iter_any():
                    await response.write(piece)
        except TimeoutError:
            await response.write(b'{"type":"MODIFIED","object":{"metadata":{"na')


def _with_undecodable_items(answer: dict[str, object]) -> dict[str, object]:
    return {**answer, "items": [*ELSEWHERE, *(answer["items"] or [])]}  # type: ignore[misc]


@asynccontextmanager
async def _serving(cluster: LocalCluster) -> AsyncIterator[str]:
    context = ssl.create_default_context(cafile=str(cluster.ca))
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    no_limit = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        connector=connector, timeout=no_limit, read_bufsize=2**24
    ) as session:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", UndecodableApi(cluster.url, session).answer)
        runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        await runner.cleanup()


@contextmanager
def undecodable_api(cluster: LocalCluster, path: Path, token: str) -> Iterator[Path]:
    """Serve until the block ends; write and yield a kubeconfig for this server."""
    ready = threading.Event()
    loop, ended = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with _serving(cluster) as url:
            kubeconfigs.write(path, url=url, ca=cluster.ca, token=token)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(30)
    try:
        yield path
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()

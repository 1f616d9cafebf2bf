"""An API server that follows a script, for faults that a real one can't be made to show."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from kubernetes_asyncio.client import Configuration

from gpuspawner.cluster.client import Client
from gpuspawner.cluster.retries import Backoff
from tests.waiting import UNIT_PATIENCE as PATIENCE

Step = Callable[[web.Request], Awaitable[web.StreamResponse]]

# It asks again at once, but waits for each answer longer than a machine may stand still.
FAST = Backoff(page=PATIENCE, watch=5, silence=PATIENCE, first_retry=0.01, last_retry=0.02)


class ScriptedServer:
    """Answers each request to a path with the next step of that path's script.

    When a script is used up, the answer is 503.
    """

    def __init__(self, **scripts: list[Step]) -> None:
        self.scripts = scripts
        self.queries: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.host = ""
        self.loads = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.queries.append(dict(request.query))
        self.headers.append(dict(request.headers))
        script = self.scripts.get(request.path.rsplit("/", 1)[-1], [])
        return await (script.pop(0) if script else failure(503))(request)

    async def configuration(self) -> Configuration:
        self.loads += 1
        return Configuration(host=self.host)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Client]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(app, shutdown_timeout=0, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
        client = Client(self.configuration)
        try:
            yield client
        finally:
            await client.close()
            await runner.cleanup()


def preferring(version: str) -> Step:
    """An API group's answer to the question for its versions."""

    async def step(_: web.Request) -> web.StreamResponse:
        return web.json_response({"preferredVersion": {"version": version}})

    return step


def obj(name: str, version: str = "1", namespace: str = "", **fields: object) -> dict[str, object]:
    return {
        "metadata": {"name": name, "namespace": namespace, "resourceVersion": version},
        **fields,
    }


def event(type_: str, body: object) -> bytes:
    """Return a line of a watch, without white space, as the API server writes it."""
    line = json.dumps({"type": type_, "object": body}, separators=(",", ":"))
    return line.encode() + b"\n"


def page(*items: object, version: str = "1", then: str = "") -> Step:
    body = {"metadata": {"resourceVersion": version, "continue": then}, "items": list(items)}

    async def step(_: web.Request) -> web.StreamResponse:
        return web.json_response(body)

    return step


def raw(body: bytes) -> Step:
    async def step(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    return step


def failure(status: int, message: str = "scripted", **headers: str) -> Step:
    async def step(_: web.Request) -> web.StreamResponse:
        body = {"kind": "Status", "message": message, "code": status}
        return web.json_response(body, status=status, headers=headers)

    return step


def cut() -> Step:
    """Close the connection without an answer; aiohttp asks once more on a new one."""

    async def step(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    return step


def silence() -> Step:
    """Never begin an answer."""

    async def step(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()  # aiohttp cancels this when the client disconnects
        raise AssertionError

    return step


def broken() -> Step:
    """Close the connection in the middle of an answer."""

    async def step(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{")
        assert request.transport is not None
        request.transport.close()
        return response

    return step


def watch(*pieces: bytes, hold: bool = False) -> Step:
    """Answer a watch with the pieces; then end it, or with `hold` leave it open in silence."""

    async def step(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if hold:
            await asyncio.Event().wait()  # aiohttp cancels this when the client disconnects
        return response

    return step


def after(moment: asyncio.Event, step: Step) -> Step:
    """Answer with the step only after a moment."""

    async def later(request: web.Request) -> web.StreamResponse:
        await moment.wait()
        return await step(request)

    return later


def telling(moment: asyncio.Event, step: Step) -> Step:
    """Tell when the step is asked for."""

    async def telling_step(request: web.Request) -> web.StreamResponse:
        moment.set()
        return await step(request)

    return telling_step

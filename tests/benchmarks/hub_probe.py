"""Runs inside of a hub and measures it: a hub's configuration calls `begin(c)`.

The hub then answers at ``/hub/probe/…``.
"""

import asyncio
import bisect
import gc
import itertools
import json
import time
from typing import Any

from tornado.web import RequestHandler

from gpuspawner import runtime
from tests.benchmarks.events import list_again
from tests.benchmarks.readers import Ticker


class Probe:
    """How long the event loop was held, and by how much of that Python's collections."""

    def __init__(self) -> None:
        self._ticker = Ticker()
        self._collected = 0.0
        self._longest = 0.0
        gc.callbacks.append(self._note)

    async def run(self) -> None:
        """Measure until the hub ends."""
        async with self._ticker.ticking():
            await asyncio.Event().wait()

    def held(self) -> dict[str, float]:
        """Return the longest holds and collection in ms of processor time, and begin anew."""
        holds, longest = self._ticker.holds, self._longest
        self._ticker.holds, self._longest = [], 0.0
        return {"held": max(holds), "late": _met(holds), "collection": longest}

    def _note(self, phase: str, _: object) -> None:
        if phase == "start":
            self._collected = time.thread_time()
        else:
            self._longest = max(self._longest, (time.thread_time() - self._collected) * 1000)


def _met(holds: list[float]) -> float:
    """Return the 99th percentile of the holds that one meets who comes at any moment.

    Most rounds of the loop last less than a tenth of a millisecond, so few come during them.
    """
    passed = list(itertools.accumulate(sorted(holds)))
    return sorted(holds)[bisect.bisect_left(passed, 0.99 * passed[-1])]


probe: Probe
_tasks: list[asyncio.Task[None]] = []


class Held(RequestHandler):
    """Answers with the figures since the last question."""

    def get(self) -> None:
        """Answer."""
        self.finish(json.dumps(probe.held()))


class NewList(RequestHandler):
    """Lets the view list everything again, and answers when it has."""

    async def get(self) -> None:
        """Answer."""
        await list_again(runtime.running().view)
        self.finish()


class Pod(RequestHandler):
    """Answers with the labels of a pod in the view."""

    def get(self, key: str) -> None:
        """Answer."""
        self.finish(json.dumps(runtime.running().view.state.pods[key].labels))


class Collection(RequestHandler):
    """Collects everything, as Python does from time to time; answers with the ms it took."""

    def get(self) -> None:
        """Answer."""
        began = time.thread_time()
        gc.collect()
        self.finish(json.dumps((time.thread_time() - began) * 1000))


HANDLERS = [
    ("/probe/held", Held),
    ("/probe/list", NewList),
    ("/probe/collection", Collection),
    ("/probe/pods/(.*)", Pod),
]


def begin(c: Any) -> None:
    """Measure this hub as soon as its event loop is free."""
    c.JupyterHub.extra_handlers = HANDLERS
    asyncio.get_running_loop().call_soon(_begin)


def _begin() -> None:
    global probe  # noqa: PLW0603, there is one in a process, as there is one hub
    probe = Probe()
    _tasks.append(asyncio.ensure_future(probe.run()))

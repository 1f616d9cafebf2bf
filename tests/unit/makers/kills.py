"""JupyterHub's own starts and stops, and what is in its database after each of their commits."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from jupyterhub import orm
from jupyterhub.auth import DummyAuthenticator
from jupyterhub.objects import Server
from jupyterhub.user import UserDict
from jupyterhub.utils import utcnow
from kubespawner import KubeSpawner
from sqlalchemy import event
from traitlets.config import Config

from gpuspawner import GPUSpawner
from gpuspawner.compat import waiting
from gpuspawner.launch import run
from gpuspawner.launch.server_state import last_of, place_of
from gpuspawner.reservations.place_in_line import KeptPlace
from tests.unit.makers.hub_database import HubDatabase
from tests.unit.makers.hubs import A100, StillHub
from tests.unit.makers.waiters import FULL

_COLUMNS = "SELECT state, user_options, server_id, started FROM spawners"


class Row(NamedTuple):
    """What the database says of alice's server, which pods there are, and what has happened."""

    state: Any = None
    options: Any = None
    has_server: bool = False
    has_begun: bool = False
    pods: frozenset[str] = frozenset()
    facts: frozenset[str] = frozenset()

    @property
    def of_kubespawner(self) -> dict[str, object]:
        return {name: it for name, it in (self.state or {}).items() if name != "gpuspawner"}

    @property
    def place(self) -> KeptPlace | None:
        return place_of(self.state)

    @property
    def ending(self) -> str:
        ending = last_of(self.state)
        return ending.kind.value if ending else ""


class MortalHub:
    """A hub that may have been killed after any of its commits; the only GPU is in use.

    Attributes:
        rows: What was in the database after each commit that changed it.
        facts: What has happened by now, as the test says.
        pods: The names of alice's pods.

    Args:
        row: What the last hub has left.
        database: Its database; by default, a new one.
    """

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        row: Row,
        *,
        queue: object = True,
        database: HubDatabase | None = None,
    ) -> None:
        self.pods, self.facts, self.rows = set(row.pods), set(row.facts), [row]
        self.still = StillHub(patch, *FULL)
        self._stub(patch)
        db = (database := database or HubDatabase()).session
        self._sql = database.execute
        owner = database.user("alice")
        stored = orm.Spawner(name="", user=owner, state=row.state, user_options=row.options)
        stored.started = utcnow(with_tz=False) if row.has_begun else None
        stored.server = orm.Server() if row.has_server else None
        db.add_all((stored, orm.OAuthClient(identifier="jupyterhub")))
        db.commit()
        event.listen(db, "after_commit", lambda _: self._note())
        settings = {
            "hub": self.still,
            "config": Config(GPUSpawner={"accelerators": {"a100": A100}, "queue": queue}),
            "authenticator": DummyAuthenticator(),
            "statsd": SimpleNamespace(incr=lambda *_: None),
            "spawner_class": lambda **kwargs: GPUSpawner(_mock=True, **kwargs),
        }
        users = UserDict(lambda: db, settings)
        self.user: Any = users.add(owner)
        its = {"users": users}
        hub = SimpleNamespace(db=db, tornado_settings=its, tornado_application=None)
        patch.setattr(waiting, "hub", lambda: hub)
        self._starts: list[asyncio.Future[Any]] = []

    def _stub(self, patch: pytest.MonkeyPatch) -> None:
        """Stand in for the cluster's API, and for the hub's."""

        async def answers(*_: object, **__: object) -> Any:
            return SimpleNamespace(headers={})

        async def start(spawner: Any) -> str:
            await spawner._make_create_pod_request(await spawner.get_pod_manifest(), 1)
            return "http://10.0.0.1:8888"

        async def create(spawner: Any, *_: object) -> bool:
            self.pods.add(spawner.pod_name)
            return True

        async def poll(spawner: Any) -> int | None:
            return None if spawner.pod_name in self.pods else 1

        async def stop(spawner: Any, _now: object) -> None:
            await asyncio.sleep(1)
            self.pods.discard(spawner.pod_name)

        patch.setattr("kubespawner.spawner.load_config", lambda **_: None)
        patch.setattr("kubespawner.spawner.shared_client", lambda _: SimpleNamespace())
        for name, does in (("_start", start), ("poll", poll), ("stop", stop)):
            patch.setattr(KubeSpawner, name, does)
        patch.setattr(KubeSpawner, "_make_create_pod_request", create)
        patch.setattr(Server, "wait_up", answers)
        patch.setattr(run, "until_reachable", answers)
        patch.setattr(waiting, "answers", answers)
        patch.setattr(waiting, "start", lambda _row, options: self.post(options))

    def _note(self) -> None:
        for state, options, server, started in self._sql(_COLUMNS):
            stored = json.loads(state or "null"), json.loads(options or "null")
            now = frozenset(self.pods), frozenset(self.facts)
            row = Row(*stored, server is not None, started is not None, *now)
            if row != self.rows[-1]:
                self.rows.append(row)

    @property
    def spawner(self) -> Any:
        return self.user.spawners[""]

    @property
    def is_in_line(self) -> bool:
        return bool(self.spawner.gpuspawner_gates.turn.is_on)

    async def post(self, options: object) -> int:
        """Start the server as the hub's API does; return its status."""
        if self.spawner.pending:
            return 400
        start = asyncio.ensure_future(self.user.spawn("", options=options))
        self._starts.append(start)
        spawner = self.spawner
        spawner._spawn_pending, spawner._spawn_future = True, start
        start.add_done_callback(lambda _: setattr(spawner, "_spawn_pending", False))
        await asyncio.wait({start}, timeout=5)
        if not start.done():
            return 202
        return 500 if start.exception() else 201

    async def begin(self) -> None:
        """Check the server as a hub does that begins, and let those wait on who were in line."""
        await self.check()
        if (line := self.still.runtime(self.spawner).line) is not None:
            await line.resume(self.still.view)

    async def check(self) -> None:
        """Check the server as a hub does that begins."""
        if self.spawner.server:
            self.spawner._check_pending = True
            if await self.spawner.poll() is None:
                self.spawner.start_polling()
            else:
                await self.user.stop("")
            self.spawner._check_pending = False

    async def end(self) -> None:
        """Let nothing of it go on, without any trace in the database."""
        for start in self._starts:
            start.cancel()
        await asyncio.gather(*self._starts, return_exceptions=True)
        self.spawner.stop_polling()

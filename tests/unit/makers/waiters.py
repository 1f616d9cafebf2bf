"""Somebody who waits in line for a start, without a hub."""

import asyncio
from typing import Any

import pytest
from jupyterhub import orm

from gpuspawner import GPUSpawner
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.hub_database import HubDatabase
from tests.unit.makers.hubs import A100, StillHub
from tests.unit.makers.worlds import node, pod, settle

T4 = {"display_name": "T4", "node_selector": {"gpu": "t4"}}
FULL = ("Node", node("a", 1)), ("Pod", pod("x", 1, on="a"))


class Waiting:
    """Alice, who asks for an A100 while the only one is in use."""

    def __init__(
        self, hub: StillHub, wish: object, of: type[GPUSpawner] = GPUSpawner, queue: object = True
    ) -> None:
        self.hub = hub
        self.spawner: Any = hub.spawner(of, accelerators={"a100": A100, "t4": T4}, queue=queue)
        database = HubDatabase()
        row, user = database.user("alice"), self.spawner.user
        user.groups, user.roles, user.db = row.groups, row.roles, database.session
        self._owner = row
        self.spawner.user_options = {"accelerator": "a100", "gpus": 1, "wait": wish}
        self.start: asyncio.Task[object] | None = None

    def row(self, **columns: object) -> Any:
        """Let the hub's database have her server, with these columns."""
        row = self.spawner.orm_spawner = orm.Spawner(name="", user=self._owner, **columns)
        self.spawner.user.db.add(row)
        self.spawner.user.db.commit()
        return row

    async def begin(self) -> None:
        self.start = asyncio.ensure_future(self.spawner.run_pre_spawn_hook())
        await settle()

    @property
    def server(self) -> Any:
        return self.spawner.gpuspawner_gates.server_state.server

    @property
    def place(self) -> Any:
        return self.spawner.gpuspawner_gates.turn

    async def starts(self) -> None:
        """Wait until the start goes on, for an hour of the event loop's time at most."""
        assert self.start is not None
        await asyncio.wait_for(self.start, 3600)

    async def refused(self) -> Refusal:
        with pytest.raises(Refusal) as refusal:
            await self.starts()
        return refusal.value

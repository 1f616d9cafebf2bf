"""Somebody who waits in line for a start, without a hub."""

import asyncio
from typing import Any

import pytest
from jupyterhub import orm

from gpuspawner import GPUSpawner
from gpuspawner.launch.server_state import place_of
from gpuspawner.line.stored_places import StoredPlaces
from gpuspawner.reservations.place_in_line import KeptPlace, Wish
from gpuspawner.start.refusal import Refusal
from tests.unit.makers.hub_database import HubDatabase
from tests.unit.makers.hubs import A100, StillHub
from tests.unit.makers.worlds import node, pod, settle

T4 = {"display_name": "T4", "node_selector": {"gpu": "t4"}}
FULL = ("Node", node("a", 1)), ("Pod", pod("x", 1, on="a"))


class Waiting:
    """Alice, who asks for an A100 while the only one is in use.

    Attributes:
        row: Her server in the hub's database.
    """

    def __init__(
        self, hub: StillHub, wish: object, of: type[GPUSpawner] = GPUSpawner, queue: object = True
    ) -> None:
        self.hub = hub
        self.spawner: Any = hub.spawner(of, accelerators={"a100": A100, "t4": T4}, queue=queue)
        database = HubDatabase()
        row, user = database.user("alice"), self.spawner.user
        user.groups, user.roles, user.db = row.groups, row.roles, database.session
        self.row: Any = orm.Spawner(name="", user=row)
        self.spawner.orm_spawner = self.row
        self.store()
        self.spawner.user_options = {"accelerator": "a100", "gpus": 1, "wait": wish}
        self.start: asyncio.Task[object] | None = None

    def store(self, **columns: object) -> None:
        """Let her server have these columns in the hub's database."""
        for name, value in columns.items():
            setattr(self.row, name, value)
        self.spawner.user.db.add(self.row)
        self.spawner.user.db.commit()

    async def begin(self) -> None:
        self.start = asyncio.ensure_future(self.spawner.run_pre_spawn_hook())
        await settle()

    @property
    def stored(self) -> KeptPlace | None:
        """Her place, as the next hub reads it."""
        return place_of(self.row.state)

    def keep(self, since: float = 1.0, **options: object) -> StoredPlaces:
        """Let the hub await her, as after a restart, and return the places that it keeps."""
        line: Any = self.hub.runtime(self.spawner).line
        kept: StoredPlaces = line.stored_places
        kept.keep_stored({self.server: KeptPlace(since, Wish.ANYWAY, options)})
        return kept

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

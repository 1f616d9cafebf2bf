"""A hub's database in a file, whose faults are SQLite's own."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jupyterhub import orm
from sqlalchemy import create_engine, event
from sqlalchemy.orm import Session

from tests.unit.makers.hub_database import HubDatabase
from tests.waiting import UNIT_PATIENCE

_BUSY_SECONDS = 0.01
"""How long a commit waits for a lock; a hub's waits 5 s."""
_MOST_PAGES = 2**30


class FileDatabase(HubDatabase):
    """The real database of JupyterHub, and what can befall it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        path = folder / "hub.sqlite"
        self._other = sqlite3.connect(path, isolation_level=None)
        self._connection.backup(self._other)
        connect = {"check_same_thread": False, "timeout": _BUSY_SECONDS}
        engine = create_engine(f"sqlite:///{path}", connect_args=connect)
        orm.register_foreign_keys(engine)
        orm.register_ping_connection(engine)
        self._most_pages = _MOST_PAGES
        event.listen(engine, "checkout", self._limit)
        self.session = Session(engine, expire_on_commit=False)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let another program have it for itself."""
        self._other.execute("BEGIN EXCLUSIVE")
        try:
            yield
        finally:
            self._other.execute("ROLLBACK")

    @contextmanager
    def full(self) -> Iterator[None]:
        """Let it have no room for another page, as on a full disk."""
        self._most_pages = 1  # SQLite takes that for the number of pages that there are
        try:
            yield
        finally:
            self._most_pages = _MOST_PAGES

    def _limit(self, connection: sqlite3.Connection, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {self._most_pages}")

    def execute(self, statement: str) -> list[Any]:
        """As another program does."""
        return self._other.execute(statement).fetchall()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, while other tasks go on."""
    async with asyncio.timeout(UNIT_PATIENCE):
        while not condition():  # noqa: ASYNC110, nothing tells
            await asyncio.sleep(0.01)

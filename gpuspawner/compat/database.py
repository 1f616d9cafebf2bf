"""What gpuspawner writes into the hub's database, so that it survives the database's faults.

The whole hub shares one session. After a commit that fails, it refuses everybody until somebody
rolls it back. JupyterHub does so only when a request fails (``handlers/base.py`` of 5.5.0 and
6.1.1), and a start that ends before keeps its server in the database. SQLite waits 5 s for a lock
(the default of ``sqlite3.connect``, which JupyterHub leaves), and the event loop with it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar
from weakref import WeakSet

from jupyterhub import orm
from sqlalchemy import event, inspect, update
from sqlalchemy.engine import Engine
from sqlalchemy.exc import (
    InterfaceError,
    InternalError,
    OperationalError,
    PendingRollbackError,
    SQLAlchemyError,
)
from sqlalchemy.orm import Session

log = logging.getLogger(__name__)

_MAY_PASS = (OperationalError, InterfaceError, InternalError)
"""Errors of a database itself, which may take the same later. Others are about what is sent."""
_faults: WeakSet[Exception] = WeakSet()
"""Those of the hub's own database: administrators' code may ask others."""

_AGAIN_SECONDS = 1.0
_MOST_TRIES = 600
"""How often the same may fail although the database takes changes, as on a full disk."""
_NOTHING = update(orm.Spawner).where(orm.Spawner.id < 0).values(name=orm.Spawner.name)
"""Changes nothing, but needs what changes need: a connection, the lock, the right to write."""

_Change = Callable[[], object]
T = TypeVar("T")


class Database:
    """The hub's session.

    Attributes:
        rollbacks: How often it has been rolled back, by whomever.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._turn, self._later = session, asyncio.Lock(), set[asyncio.Task[None]]()
        self._engine: Engine = session.get_bind().engine
        self._fails = self._is_told = False
        self.rollbacks = 0
        event.listen(session, "after_soft_rollback", self._rolled_back)
        event.listen(self._engine, "handle_error", _collect)

    @classmethod
    def of(cls, session: Session) -> "Database":
        """Return the one of a session; from the first call on, no failed commit breaks it."""
        found: Database = session.info.get(cls) or session.info.setdefault(cls, cls(session))
        return found

    def write(self, change: _Change) -> None:
        """Make a change and commit it: now, or else as soon as the database takes it."""
        if self._fails or not self._wrote(change):
            task = asyncio.get_running_loop().create_task(self.written(change))
            self._later.add(task)
            task.add_done_callback(self._later.discard)

    async def written(self, change: _Change) -> None:
        """As `write`, and wait for it."""
        for _ in range(_MOST_TRIES):
            await self._settled()
            if self._wrote(change):
                return
        log.warning("The hub's database has refused a change too often, so it is left out.")

    async def surviving(self, act: Callable[[], Awaitable[T]]) -> T:
        """Do something, and again whenever the database fails in it.

        If it fails otherwise while the database fails too, this raises when the hub can store that.
        """
        for _ in range(_MOST_TRIES):
            await self._settled()
            try:
                return await act()
            except Exception as error:
                if not self._survives(error):
                    await self._settled()
                    raise
        return await act()

    async def _settled(self) -> None:
        """Wait while the database fails."""
        if self._fails:
            await asyncio.sleep(_AGAIN_SECONDS)
            async with self._turn:  # one after the other, or all would meet the same lock
                while self._fails:
                    self._fails = not await asyncio.to_thread(_takes_changes, self._engine)
                    await asyncio.sleep(_AGAIN_SECONDS if self._fails else 0)

    def _wrote(self, change: _Change) -> bool:
        """Whether that is done: the change is committed, or it never can be."""
        try:
            change()
            self._session.commit()
        except Exception as error:
            if self._survives(error):
                return False
            self._session.rollback()  # of a row that is deleted, say, or of an administrator's code
            log.warning("The hub's database can't have this", exc_info=True)
            return True
        if self._is_told:
            log.info("The hub's database takes changes again.")
        self._fails = self._is_told = False
        return True

    def _survives(self, error: Exception) -> bool:
        """Whether this is a fault; make the session usable again, and log the first of many."""
        if not is_fault(error):
            return False
        self._session.rollback()
        if not self._is_told:
            why = getattr(error, "orig", error)
            log.warning("The hub's database fails, so what is to be in it has to wait: %s", why)
        self._fails = self._is_told = True
        return True

    def _rolled_back(self, *_: object) -> None:
        self.rollbacks += 1
        with suppress(RuntimeError):  # no event loop
            asyncio.get_running_loop().call_soon(self._mend)

    def _mend(self) -> None:
        """Let a commit that has failed harm nobody else, whosever it was."""
        if not self._session.is_active:  # else others have, and may have made changes since
            self._session.rollback()


def _takes_changes(engine: Engine) -> bool:
    """Whether a database takes changes. Only threads may wait for that, and not the event loop."""
    with suppress(SQLAlchemyError), engine.connect() as connection:
        return connection.execute(_NOTHING).rowcount == 0
    return False


def _collect(context: Any) -> None:
    if isinstance(context.sqlalchemy_exception, _MAY_PASS):
        _faults.add(context.sqlalchemy_exception)


def is_fault(error: Exception) -> bool:
    """Whether this is a fault of the hub's database, which `Database.surviving` survives."""
    return error in _faults or isinstance(error, PendingRollbackError)


def database_of(row: object) -> Database | None:
    """Return the database of a server's row; None if there is none, as in a command."""
    session = inspect(row).session if isinstance(row, orm.Spawner) else None
    return Database.of(session) if session is not None else None

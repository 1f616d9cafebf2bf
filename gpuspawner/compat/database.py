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

from jupyterhub import orm
from sqlalchemy import event, update
from sqlalchemy.engine import Engine
from sqlalchemy.exc import (
    InterfaceError,
    InternalError,
    OperationalError,
    PendingRollbackError,
    SQLAlchemyError,
    TimeoutError,  # noqa: A004, that of a pool of connections
)
from sqlalchemy.orm import Session, object_session

log = logging.getLogger(__name__)

FAULTS = (OperationalError, InterfaceError, InternalError, PendingRollbackError, TimeoutError)
"""Errors of the database itself, which may take the same later. Others are about what is sent."""

_AGAIN_SECONDS = 1.0
_NOTHING = update(orm.Spawner).where(orm.Spawner.id < 0).values(name=orm.Spawner.name)
"""Changes nothing, but needs what changes need: a connection, the lock, the right to write."""

Change = Callable[[], object]
T = TypeVar("T")


class Database:
    """The hub's session.

    Attributes:
        rollbacks: How often it has been rolled back, by whomever.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._turn = session, asyncio.Lock()
        self._engine: Engine = session.get_bind().engine
        self._fails, self._later = False, set[asyncio.Task[None]]()
        self.rollbacks = 0
        event.listen(session, "after_soft_rollback", self._mend)

    @classmethod
    def of(cls, session: Session) -> "Database":
        """Return the one of a session; from the first call on, no failed commit breaks it."""
        found: Database = session.info.get(cls) or session.info.setdefault(cls, cls(session))
        return found

    def write(self, change: Change) -> None:
        """Make a change and commit it: now, or else as soon as the database takes it."""
        if self._fails or not self._wrote(change):
            task = asyncio.get_running_loop().create_task(self.written(change))
            self._later.add(task)
            task.add_done_callback(self._later.discard)

    async def written(self, change: Change) -> None:
        """As `write`, and wait for it."""
        await self._settled()
        while not self._wrote(change):
            await self._settled()

    async def surviving(self, act: Callable[[], Awaitable[T]]) -> T:
        """Do something, and again whenever the database fails in it.

        If it fails otherwise while the database fails too, this raises when the hub can store that.
        """
        while True:
            await self._settled()
            try:
                return await act()
            except FAULTS as fault:
                self._note(fault)
            except Exception:
                await self._settled()
                raise

    async def _settled(self) -> None:
        """Wait while the database fails."""
        if self._fails:
            await asyncio.sleep(0)  # see `spawn.at_once`
            await asyncio.sleep(_AGAIN_SECONDS)
            async with self._turn:  # one after the other, or all would meet the same lock
                while not await asyncio.to_thread(_takes_changes, self._engine):  # noqa: ASYNC110
                    await asyncio.sleep(_AGAIN_SECONDS)

    def _wrote(self, change: Change) -> bool:
        """Whether that is done: the change is committed, or it never can be."""
        try:
            change()
            self._session.commit()
        except FAULTS as fault:
            self._note(fault)
            return False
        except SQLAlchemyError as error:  # a row that another program has deleted, say
            self._session.rollback()
            log.warning("The hub's database can't have this: %s", error)
            return True
        if self._fails:
            log.info("The hub's database takes changes again.")
        self._fails = False
        return True

    def _note(self, fault: SQLAlchemyError) -> None:
        """Make the session usable again, and log the first of many faults."""
        self._session.rollback()
        if not self._fails:
            why = getattr(fault, "orig", None) or fault
            log.warning("The hub's database fails, so what is to be in it has to wait: %s", why)
        self._fails = True

    def _mend(self, *_: object) -> None:
        """Let a commit that has failed harm nobody else, whosever it was."""
        self.rollbacks += 1
        if not self._session.is_active:
            with suppress(RuntimeError):  # no event loop
                asyncio.get_running_loop().call_soon(self._session.rollback)


def _takes_changes(engine: Engine) -> bool:
    """Whether a database takes changes. Only threads may wait for that, and not the event loop."""
    with suppress(SQLAlchemyError), engine.connect() as connection:
        return connection.execute(_NOTHING).rowcount == 0
    return False


def database_of(row: Any) -> Database | None:
    """Return the database of a row; None if there is no row, or if it isn't in a database."""
    session = object_session(row) if row is not None else None
    return Database.of(session) if session is not None else None

"""What is to be in the hub's database gets there, whatever befalls the database meanwhile."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.objects import Server
from jupyterhub.spawner import Spawner
from jupyterhub.user import UserDict
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError, PendingRollbackError
from sqlalchemy.orm.exc import StaleDataError

from gpuspawner.compat import database, jupyterhub
from gpuspawner.compat.database import Database
from tests.unit.makers.file_database import FileDatabase, until
from tests.unit.makers.hub_database import HubDatabase
from tests.waiting import UNIT_PATIENCE

LARGE = {"x": "y" * 100_000}
"""A state for which the database needs more pages."""
_LARGE = "SELECT name FROM spawners WHERE state LIKE '%yy%' ORDER BY name"


def ours(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What we have logged; other tests may let the hub log more than usual."""
    return [it.getMessage() for it in caplog.records if it.name.startswith("gpuspawner")]


@pytest.fixture(autouse=True)
def soon(monkeypatch) -> None:
    monkeypatch.setattr(database, "_AGAIN_SECONDS", 0.01)


@pytest.fixture
def db(tmp_path) -> FileDatabase:
    return FileDatabase(tmp_path)


@pytest.fixture
def rows(db) -> list[Any]:
    """Three servers, a to c, of one user."""
    user = db.user("ann")
    rows = [orm.Spawner(name=name, user=user) for name in "abc"]
    db.session.add_all(rows)
    db.session.commit()
    return rows


class Probes:
    """The questions, in threads, whether a database takes changes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._asked = asyncio.Event()
        self._loop, self._ask = asyncio.get_running_loop(), database._takes_changes
        patch.setattr(database, "_takes_changes", self._takes_changes)

    def _takes_changes(self, engine: Any) -> bool:
        takes = self._ask(engine)
        self._loop.call_soon_threadsafe(self._asked.set)
        return takes

    async def another(self) -> None:
        """Wait until one more is answered."""
        self._asked.clear()
        await self._asked.wait()


@pytest.fixture
async def probes(monkeypatch) -> Probes:
    return Probes(monkeypatch)


def becomes_large(row: Any) -> Any:
    return lambda: setattr(row, "state", LARGE)


def new_server() -> Server:
    return Server(orm_server=orm.Server(proto="http", ip="", port=80, base_url="/", cookie_name=""))


@pytest.mark.parametrize(
    ("fault", "told"), [("locked", "database is locked"), ("full", "database or disk is full")]
)
async def test_what_a_database_refuses_is_in_it_as_soon_as_it_takes_it_and_is_told_once(
    db, rows, fault, told, caplog
) -> None:
    caplog.set_level("INFO")

    with getattr(db, fault)():
        for row in rows:
            Database.of(db.session).write(becomes_large(row))
        await until(lambda: len(ours(caplog)) == 1)
        assert db.session.is_active

    await until(lambda: db.execute(_LARGE) == [("a",), ("b",), ("c",)])
    assert ours(caplog) == [
        f"The hub's database fails, so what is to be in it has to wait: {told}",
        "The hub's database takes changes again.",
    ]


async def test_who_waits_for_a_locked_database_does_not_hold_the_event_loop(
    db, rows, probes, monkeypatch
) -> None:
    its = Database.of(db.session)
    with db.locked(), monkeypatch.context() as patch:
        waits = [asyncio.create_task(its.written(becomes_large(row))) for row in rows]
        await probes.another()
        tried: list[object] = []
        patch.setattr(its, "_wrote", tried.append)
        for _ in rows:
            await probes.another()
        assert tried == []

    await asyncio.gather(*waits)
    assert len(db.execute(_LARGE)) == len(rows)


async def test_a_failed_commit_of_the_hub_harms_nobody_else(db, rows) -> None:
    """JupyterHub rolls back only when a request fails; starts fail in tasks of their own."""
    Database.of(db.session)
    rows[0].state = {"of": "the hub"}
    with db.locked(), pytest.raises(OperationalError):
        db.session.commit()
    with pytest.raises(PendingRollbackError):
        _ = rows[1].state

    await asyncio.sleep(0)

    assert rows[1].state is None
    await Database.of(db.session).written(becomes_large(rows[1]))
    assert db.execute(_LARGE) == [("b",)]


async def test_what_mends_the_session_leaves_what_the_hub_has_changed_since(db, rows) -> None:
    Database.of(db.session)
    rows[0].state = {"of": "a handler"}
    with db.locked(), pytest.raises(OperationalError):
        db.session.commit()
    db.session.rollback()  # as JupyterHub's handler does
    rows[1].state = LARGE  # of another one, which waits for something before it commits

    await asyncio.sleep(0)
    db.session.commit()

    assert db.execute(_LARGE) == [("b",)]


async def test_a_server_that_another_program_has_deleted_is_no_fault_of_the_database(
    db, rows, caplog
) -> None:
    db.execute("DELETE FROM spawners WHERE name = 'a'")

    for row in rows:
        Database.of(db.session).write(becomes_large(row))

    assert db.execute(_LARGE) == [("b",), ("c",)]
    assert "expected to update 1 row(s); 0 were matched" in caplog.text
    await asyncio.wait_for(Database.of(db.session).written(becomes_large(rows[0])), 5)


async def test_a_stale_row_of_the_hub_s_own_harms_nobody_else(db, rows) -> None:
    Database.of(db.session)
    db.execute("DELETE FROM spawners WHERE name = 'a'")
    rows[0].state = LARGE
    with pytest.raises(StaleDataError):
        db.session.commit()

    await asyncio.sleep(0)

    assert rows[1].state is None


async def test_what_a_fault_interrupts_is_done_again(db, rows) -> None:
    done: list[str] = []

    async def act() -> str:
        done.append("begun")
        db.session.expire_all()
        return str(rows[0].name)

    with db.locked():
        surviving = asyncio.create_task(Database.of(db.session).surviving(act))
        await until(lambda: bool(done))

    assert await surviving == "a"
    assert len(done) > 1


async def test_after_a_fault_that_has_passed_nobody_waits(db, rows) -> None:
    its, begun = Database.of(db.session), asyncio.Event()

    async def act() -> str:
        begun.set()
        db.session.expire_all()
        return str(rows[0].name)

    with db.locked():
        surviving = asyncio.create_task(its.surviving(act))
        await begun.wait()
    await surviving

    its.write(becomes_large(rows[0]))

    assert db.execute(_LARGE) == [("a",)]


async def test_a_fault_of_another_database_is_told_at_once(db, rows, tmp_path) -> None:
    """An administrator's class may ask its own, of which the hub's tells nothing."""
    its, others = Database.of(db.session), create_engine(f"sqlite:///{tmp_path}/no/where")

    async def act() -> None:
        others.connect()

    with pytest.raises(OperationalError):
        await asyncio.wait_for(its.surviving(act), UNIT_PATIENCE)
    its.write(becomes_large(rows[0]))
    assert db.execute(_LARGE) == [("a",)]


async def test_what_a_database_never_takes_is_not_tried_for_ever(
    db, rows, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(database, "_MOST_TRIES", 3)
    its, never = Database.of(db.session), "BEGIN SELECT * FROM nowhere; END"
    db.execute(f"CREATE TRIGGER never BEFORE UPDATE OF state ON spawners {never}")

    async def act() -> None:
        db.session.execute(text("SELECT * FROM nowhere"))

    with pytest.raises(OperationalError):
        await asyncio.wait_for(its.surviving(act), UNIT_PATIENCE)
    await asyncio.wait_for(its.written(becomes_large(rows[0])), UNIT_PATIENCE)
    assert "refused a change too often" in caplog.text

    its.write(lambda: setattr(rows[1], "user_options", {"gpus": 1}))
    await until(lambda: bool(db.execute("SELECT 1 FROM spawners WHERE user_options LIKE '%gpus%'")))


async def test_a_change_that_fails_by_itself_leaves_nothing_half_done(db, rows, caplog) -> None:
    """As ``get_state`` of an administrator's class may."""

    def change() -> None:
        rows[0].state = {"half": "done"}
        raise ValueError("no state")

    Database.of(db.session).write(change)

    assert not db.session.dirty
    assert "no state" in caplog.text


async def test_a_server_that_was_started_meanwhile_is_not_forgotten(db, rows) -> None:
    """The hub has no future of a start any more that has succeeded."""
    spawner: Any = Spawner(_mock=True, orm_spawner=rows[0])
    spawner.server = new_server()
    db.session.commit()
    with db.locked():
        jupyterhub.forget_server(spawner)  # somebody has cancelled its start

    spawner.server = new_server()
    db.session.commit()
    await until(lambda: not Database.of(db.session)._later)

    assert db.execute("SELECT server_id FROM spawners WHERE name = 'a'") != [(None,)]


async def test_a_server_whose_start_is_cancelled_is_forgotten_when_the_database_takes_it(
    db, rows
) -> None:
    spawner: Any = Spawner(_mock=True, orm_spawner=rows[0])
    spawner.server = new_server()
    db.session.commit()
    with db.locked():
        jupyterhub.forget_server(spawner)
    assert spawner.server is not None

    await until(lambda: db.execute("SELECT * FROM servers") == [])


async def test_options_that_somebody_sends_meanwhile_stay(db, rows) -> None:
    """By PATCH, which starts nothing."""
    spawner: Any = SimpleNamespace(orm_spawner=rows[0], user_options={"gpus": 8})
    with db.locked():
        jupyterhub.store_options(spawner, {"gpus": 1})  # as a refused start does

    rows[0].user_options = {"gpus": 4}
    db.session.commit()
    await until(lambda: not Database.of(db.session)._later)

    assert rows[0].user_options == {"gpus": 4}


async def test_what_ends_while_the_database_fails_does_so_when_the_hub_can_store_that(
    db, rows, probes
) -> None:
    async def act() -> None:
        Database.of(db.session).write(becomes_large(rows[0]))
        raise KeyError("it ends")

    with db.locked():
        ends = asyncio.create_task(Database.of(db.session).surviving(act))
        for _ in range(3):
            await probes.another()
        assert not ends.done()

    with pytest.raises(KeyError):
        await ends
    db.session.commit()


async def test_nothing_is_stored_of_a_server_that_the_hub_has_deleted(db, rows, caplog) -> None:
    spawner = SimpleNamespace(orm_spawner=rows[0])
    assert not jupyterhub.is_gone(spawner)

    users = UserDict(lambda: db.session, {})
    users.delete(users.add(rows[0].user))

    assert jupyterhub.is_gone(spawner)
    Database.of(db.session).write(becomes_large(rows[0]))
    assert db.execute(_LARGE) == []
    assert not ours(caplog)


async def test_nobody_is_idle_while_nobody_knows_it(db, rows, monkeypatch) -> None:
    spawners = {row.name: SimpleNamespace(ready=True, orm_spawner=row) for row in rows}
    settings = {"users": {"ann": SimpleNamespace(spawners=spawners)}}
    hub = SimpleNamespace(db=db.session, tornado_settings=settings)
    monkeypatch.setattr(jupyterhub, "hub", lambda: hub)
    for spawner in spawners.values():
        spawner.namespace = spawner.pod_name = "it"
    db.session.expire_all()

    with db.locked():
        assert jupyterhub.unused_for(0) == frozenset()
    assert rows[0].name == "a"


def test_users_whom_the_hub_has_not_loaded_yet_are_found_by_name() -> None:
    database = HubDatabase()
    database.user("ann")
    loaded = UserDict(lambda: database.session, {"log_function": None})
    hub = SimpleNamespace(tornado_settings={"users": loaded})

    assert not jupyterhub.all_users(hub)
    assert jupyterhub.users(hub).get("ann").name == "ann"
    assert jupyterhub.users(hub).get("bob") is None

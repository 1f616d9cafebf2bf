"""Whichever of our commits the database refuses, everything ends as if it had taken all."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from jupyterhub.user import UserDict
from kubespawner import KubeSpawner
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from gpuspawner.compat.database import Database
from gpuspawner.reservations.reservations import LIFETIME_SECONDS
from tests.unit.gates.test_kills import (
    WAITS,
    Act,
    fails,
    has_its_turn,
    is_refused,
    leaves,
    loses_its_pod,
)
from tests.unit.makers.file_database import FileDatabase
from tests.unit.makers.kills import MortalHub, Row

pytestmark = pytest.mark.usefixtures("clock", "no_threads")


async def starts(hub: MortalHub, _: object) -> None:
    await has_its_turn(hub)
    assert hub.spawner.ready


async def ends(hub: MortalHub, _: object) -> None:
    await loses_its_pod(hub)
    await hub.user.stop("")


async def outcome(
    patch: pytest.MonkeyPatch, database: FileDatabase, act: Act, locked: Callable[[int], bool]
) -> tuple[object, int]:
    """Return what an act has come to, and how many commits of ours it took.

    The database is locked for the commit whose number is *locked*.
    """
    commits, wrote = [], Database._wrote

    def locked_for_some(its: Database, change: Any) -> bool:
        commits.append(change)
        if not locked(len(commits)):
            return wrote(its, change)
        with database.locked():
            return wrote(its, change)

    patch.setattr(Database, "_wrote", locked_for_some)
    hub = MortalHub(patch, Row(), database=database)
    create = KubeSpawner._make_create_pod_request

    async def create_what_is_stored(*given: object) -> bool:
        [(state,)] = database.execute("SELECT state FROM spawners")
        assert '"began"' in state  # a hub that is killed now leaves a pod
        return await create(*given)

    patch.setattr(KubeSpawner, "_make_create_pod_request", create_what_is_stored)
    await act(hub, patch)
    await asyncio.sleep(9)
    last, spawner = hub.rows[-1], hub.user.spawners.get("")
    ready = spawner is not None and spawner.ready
    await hub.end()
    found = last.place, last.ending, last.has_server, last.options, last.pods, ready
    return found, len(commits)


@pytest.mark.parametrize("act", [starts, leaves, ends, fails, is_refused])
async def test_each_commit_that_a_locked_database_refuses_is_made_up_for(
    monkeypatch, tmp_path, act
) -> None:
    def database(number: int) -> FileDatabase:
        (folder := tmp_path / f"{number}").mkdir()
        return FileDatabase(folder)

    with monkeypatch.context() as patch:
        expected, count = await outcome(patch, database(0), act, lambda _: False)
    assert count

    for number in range(1, count + 1):
        with monkeypatch.context() as patch:
            found, _ = await outcome(patch, database(number), act, number.__eq__)
        assert found == expected, number


@pytest.mark.parametrize("call", range(1, 9))
async def test_a_fault_that_the_function_of_policies_meets_costs_nobody_the_place(
    monkeypatch, tmp_path, call
) -> None:
    """Also if it says who may wait in line."""
    database, calls = FileDatabase(tmp_path), list[Any]()
    hub = MortalHub(monkeypatch, Row(), queue={"policies": ["p"]}, database=database)

    def policies(spawner: Any) -> dict[str, Any]:
        calls.append(spawner)
        if len(calls) == call:
            with database.locked():
                spawner.user.db.expire_all()  # as each rollback does
                return {"p": {"gpus_per_server": len(spawner.user.groups)}}
        return {"p": {"gpus_per_server": 1}}

    hub.user.settings["config"].GPUSpawner.policies = policies
    await has_its_turn(hub)
    await asyncio.sleep(9)

    assert hub.spawner.ready
    assert len(calls) > call
    await hub.end()


async def test_a_commit_of_the_hub_that_fails_in_a_first_start_harms_nobody_else(
    monkeypatch, tmp_path
) -> None:
    """Also without a line: nothing of ours is in the database yet."""
    database = FileDatabase(tmp_path)
    hub = MortalHub(monkeypatch, Row(), database=database, queue=False)
    session, name = hub.user.db, hub.spawner.orm_spawner.name
    commit = Session.commit

    def locked(its: Session) -> None:
        monkeypatch.setattr(Session, "commit", commit)
        with database.locked():
            commit(its)

    monkeypatch.setattr(Session, "commit", locked)
    with suppress(OperationalError):
        await hub.user.spawn(name)
    await asyncio.sleep(0)

    assert session.is_active
    await hub.end()


async def test_a_start_keeps_its_gpu_however_long_the_database_fails_before_its_pod(
    monkeypatch,
) -> None:
    """Else the next in line gets a GPU that this start's pod then takes."""
    hub, kept = MortalHub(monkeypatch, Row(), queue=False), list[bool]()
    hub.still.view.remove_pod("x")
    reservations = hub.still.runtime(hub.spawner).preflight.reservations
    key, written = (hub.spawner.namespace, hub.spawner.pod_name), Database.written

    async def late(its: Database, change: Any) -> None:
        await asyncio.sleep(LIFETIME_SECONDS + 60)
        kept.append(reservations.is_promised(key))
        await written(its, change)

    monkeypatch.setattr(Database, "written", late)
    await hub.post({"accelerator": "a100"})
    await asyncio.sleep(LIFETIME_SECONDS + 69)

    assert kept == [True]
    assert hub.spawner.ready
    await hub.end()


async def test_who_is_removed_while_waiting_leaves_the_line(monkeypatch) -> None:
    hub = MortalHub(monkeypatch, Row())
    await hub.post(WAITS)
    assert hub.is_in_line
    waits = hub.spawner

    users = UserDict(lambda: hub.user.db, {})
    users[hub.user.id] = hub.user
    users.delete(hub.user)
    await asyncio.sleep(9)

    assert not waits.gpuspawner_gates.turn.is_on
    assert hub.pods == set()
    assert hub.user.db.is_active
    await hub.end()

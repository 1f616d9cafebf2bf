"""What the hub's database says of all servers, and of their pods.

JupyterHub has a row for each server (``orm.py``, ``Spawner``, of 5.5.0 and 6.1.1). It names the
owner by id, which stays the same if the user is renamed, and holds what KubeSpawner notes of the
pod (``get_state`` in ``kubespawner/spawner.py``; with the namespace since 5.0.0).
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from jupyterhub import orm
from sqlalchemy import select, text


class StoredState(msgspec.Struct, frozen=True):
    """What is stored of a server: what KubeSpawner notes, and our own part."""

    pod_name: str = ""
    namespace: str = ""
    gpuspawner: Any = None


def stored_servers(database: Any) -> Iterator[tuple[int, str, bool, StoredState]]:
    """Yield the id of the owner, the server's name, whether the hub has it running, and its state.

    A state that can't be read is left out: KubeSpawner can't read it either.
    """
    # As text, because a state that isn't JSON would keep the hub from all others.
    rows = database.execute(text("SELECT user_id, name, server_id, state FROM spawners"))
    for owner, name, server, state in rows:
        try:
            read = msgspec.json.decode(state or "{}", type=StoredState)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            continue
        yield owner, name, server is not None, read


_AT_ONCE = 100
"""How many rows are read at once, in about a millisecond."""


class RunningServer(msgspec.Struct, gc=False, frozen=True):
    """A server that runs, as the hub knows it.

    Attributes:
        owner_id: As in `stored_servers`.
        used: When somebody used it last, in UTC and without a time zone; None if nobody has.
    """

    owner_id: int
    owner: str
    server: str
    used: datetime | None


def running_servers(database: Any) -> Iterator[list[RunningServer]]:
    """Yield the servers that run, some at a time, so that the hub can do something else between."""
    its, last = orm.Spawner, 0
    columns = select(its.id, orm.User.id, orm.User.name, its.name, its.last_activity)
    running = columns.join(orm.User, orm.User.id == its.user_id).where(its.server_id.is_not(None))
    while True:
        some = running.where(its.id > last).order_by(its.id).limit(_AT_ONCE)
        rows = database.execute(some).all()
        yield [RunningServer(*rest) for _, *rest in rows]
        if len(rows) < _AT_ONCE:
            return
        last = rows[-1][0]

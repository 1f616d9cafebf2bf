"""What the hub's database says of all servers, and of their pods.

JupyterHub has a row for each server (``orm.py``, ``Spawner``, of 5.5.0 and 6.1.1). It names the
owner by id, which stays the same if the user is renamed, and holds what KubeSpawner notes of the
pod (``get_state`` in ``kubespawner/spawner.py``; with the namespace since 5.0.0).
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from sqlalchemy import text


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

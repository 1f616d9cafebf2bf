"""Which servers nobody uses, as the hub knows from its proxy and from the servers themselves."""

from datetime import timedelta

from jupyterhub.utils import utcnow

from gpuspawner.compat.jupyterhub import hub


def unused_for(seconds: float) -> frozenset[tuple[str, str]]:
    """Return the namespaces and names of the pods of servers that nobody has used for so long."""
    before = utcnow(with_tz=False) - timedelta(seconds=seconds)
    found = set()
    for user in hub().users.values():
        for spawner in user.spawners.values():
            last = spawner.orm_spawner.last_activity if spawner.ready else None
            if last is not None and last <= before:
                found.add((spawner.namespace, spawner.pod_name))
    return frozenset(found)

"""Which servers nobody uses, as the hub knows from its proxy and from the servers themselves."""

from datetime import timedelta

from jupyterhub.utils import utcnow
from sqlalchemy.exc import SQLAlchemyError

from gpuspawner.compat.jupyterhub import hub


def unused_for(seconds: float) -> frozenset[tuple[str, str]]:
    """Return the namespaces and names of the pods of servers that nobody has used for so long."""
    before = utcnow(with_tz=False) - timedelta(seconds=seconds)
    servers = (it for user in hub().users.values() for it in user.spawners.values() if it.ready)
    try:
        last = {(it.namespace, it.pod_name): it.orm_spawner.last_activity for it in servers}
    except SQLAlchemyError:  # who can't be looked up isn't idle
        hub().db.rollback()
        return frozenset()
    return frozenset(key for key, moment in last.items() if moment and moment <= before)

"""Whose server each pod is, as the hub itself knows.

Whoever may create or change pods can write any user's name into them. So a pod is a server if this
hub has sent it, or if the hub's database says so: also after a restart, and of a pod that
KubeSpawner made without gpuspawner. Users are known by their ids, which stay the same if they are
renamed.
"""

from collections.abc import Callable
from typing import Any

from gpuspawner.compat.people import Person
from gpuspawner.compat.stored_servers import stored_servers
from gpuspawner.kube.meta import Key
from gpuspawner.kube.servers import ServerPod
from gpuspawner.policies.charges import Charge, Who, as_annotated, owner_names
from gpuspawner.reservations import granted

Sent = tuple[Charge | None, str]
"""Whose server a pod is that was sent, and the uid of an older pod of its name; "" for none."""


class Claims:
    """The pods that are servers of this hub.

    Args:
        namespace: The pods' namespace if KubeSpawner has stored none.
        sent: As `Reservations.sent`: a start may have sent several pods whose uids aren't known
            yet. A command sends none.

    Attributes:
        pods: The servers by the uids of their pods.
    """

    def __init__(self, namespace: str, sent: Callable[[Key], Sent] = lambda _: (None, "")) -> None:
        self._namespace = namespace
        self._sent = sent
        self.pods: dict[str, Charge] = {}
        self._is_read = False

    def read(self, database: Any, left: Callable[[Key, Charge], None]) -> bool:
        """Read the hub's database; return whether this was the first time, for it is read once.

        Once a pod is gone, anybody's can have its name. So pods are known by their uids. *left* is
        called with the names of those that an earlier hub has sent without learning their uids.
        """
        if self._is_read or database is None:  # a command has none
            return False
        for owner, name, runs, state in stored_servers(database):
            said = granted.stored(state.gpuspawner)
            charge = Charge(frozenset({owner}), name).by(said)
            if said.pod:
                self.pods[said.pod] = charge
            elif runs:
                left((state.namespace or self._namespace, state.pod_name), charge)
        self._is_read = True
        return True

    def owners(self, person: Person) -> frozenset[Who]:
        """Return how charges name a person."""
        return frozenset({person.id})

    def of(self, pod: ServerPod) -> Charge | None:
        """Return whose server a pod is, and what it was granted; None if it is none."""
        uid = pod.metadata.uid
        whose, older = self._sent(pod.metadata.key)
        if whose and uid != older:
            self.pods.setdefault(uid, whose)
        return self.pods.get(uid)


class AsAnnotated(Claims):
    """Servers as their pods say: the commands don't read the hub's database."""

    def owners(self, person: Person) -> frozenset[Who]:
        """As `Claims.owners`."""
        return owner_names(person.name, person.label)

    def of(self, pod: ServerPod) -> Charge | None:
        """As `Claims.of`."""
        said = as_annotated(pod)
        return said if said.owners else None

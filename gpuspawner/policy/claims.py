"""Whose server each pod is, as the hub itself knows.

Whoever may create or change pods can write any user's name into them. So a pod is a server if this
hub has sent it, or if the hub's database says so: also after a restart, and of a pod that
KubeSpawner made without gpuspawner. Users are known by their ids, which stay the same if they are
renamed.
"""

from typing import Any

from gpuspawner.compat.people import Person
from gpuspawner.compat.stored_servers import stored_servers
from gpuspawner.kube.servers import ServerPod
from gpuspawner.policy import granted
from gpuspawner.policy.charges import Charge, Who, as_annotated, owner_names
from gpuspawner.policy.usage import Key


class Claims:
    """The pods that are servers of this hub.

    Args:
        namespace: Where the pods are for which KubeSpawner has stored no namespace.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._found: dict[Key | str, Charge] = {}
        self._is_read = False

    def read(self, database: Any) -> bool:
        """Read the hub's database; return whether this was the first time, for it is read once.

        A server that has stopped may have left its pod behind. By then anybody's pod can have its
        name, so it is known by its uid.
        """
        if self._is_read or database is None:  # a command has none
            return False
        for owner, name, runs, state in stored_servers(database):
            said = granted.stored(state.gpuspawner)
            charge = Charge(frozenset({owner}), name).by(said)
            self._found[said.pod] = charge
            if runs:
                self._found[state.namespace or self._namespace, state.pod_name] = charge
        self._found.pop("", None)  # those whose uid nobody knows
        self._is_read = True
        return True

    def owners(self, person: Person) -> frozenset[Who]:
        """Return how charges name a person."""
        return frozenset({person.id})

    def of(self, pod: ServerPod, sent: Charge | None) -> Charge | None:
        """Return whose server a pod is, and what it was granted; None if it is none.

        *sent* is the server whose start sends a pod of this name right now.
        """
        key = pod.metadata.namespace, pod.metadata.name
        if sent is not None:
            self._found[key] = sent
        return self._found.get(key) or self._found.get(pod.metadata.uid)

    def drop(self, key: Key) -> None:
        """Note that the pod of this name is gone."""
        self._found.pop(key, None)


class AsAnnotated(Claims):
    """Servers as their pods say: the commands don't read the hub's database."""

    def owners(self, person: Person) -> frozenset[Who]:
        """As `Claims.owners`."""
        return owner_names(person.name, person.label)

    def of(self, pod: ServerPod, sent: Charge | None) -> Charge | None:  # noqa: ARG002
        """As `Claims.of`."""
        said = as_annotated(pod)
        return said if said.owners else None

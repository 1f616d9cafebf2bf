"""What the servers of a hub's namespace take: by its pods and its reservations.

A reservation stands for a pod that isn't shown yet. When both are there, each amount counts once:
the larger one, because the pod may be one of an earlier start.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from gpuspawner.kube.meta import Key
from gpuspawner.policies.charges import Charge, Who

Charges = tuple[Charge, ...]
"""What a pod and a reservation of its name take; empty without either."""


class _Index:
    """The servers by names that their charges have."""

    def __init__(self, names: Callable[[Charge], frozenset[Who]]) -> None:
        self._names = names
        self._keys: dict[Who, dict[Key, None]] = {}

    def find(self, names: Iterable[Who]) -> dict[Key, None]:
        """Return the keys of all servers with one of the names."""
        found: dict[Key, None] = {}
        for name in self._keys.keys() & names:
            found |= self._keys[name]
        return found

    def change(self, key: Key, before: Charges, after: Charges) -> None:
        """Note that a server's charges have changed."""
        old = {name for charge in before for name in self._names(charge)}
        new = {name for charge in after for name in self._names(charge)}
        for name in old - new:
            del self._keys[name][key]
            if not self._keys[name]:
                del self._keys[name]
        for name in new - old:
            self._keys.setdefault(name, {})[key] = None


class Usage:
    """What each server takes at this moment.

    Attributes:
        version: Increases with every change.
        pods: What each pod takes that exists.
    """

    def __init__(self) -> None:
        self.version = 0
        self._pods: dict[Key, Charge] = {}
        self.pods: Mapping[Key, Charge] = MappingProxyType(self._pods)
        self._reserved: dict[Key, Charge] = {}
        self._by_owner = _Index(lambda charge: charge.owners)
        self._by_group = _Index(lambda charge: charge.groups)
        self._listeners: list[Callable[[Key, Charges], None]] = []

    def listen(self, call: Callable[[Key, Charges], None]) -> None:
        """Call *call* with what a server takes now, whenever that has changed."""
        self._listeners.append(call)

    def put(self, key: Key, charge: Charge) -> None:
        """Note what a pod takes that exists."""
        self._set(self._pods, key, charge)

    def remove(self, key: Key) -> None:
        """Note that a pod is gone."""
        self._set(self._pods, key, None)

    def reserve(self, key: Key, charge: Charge | None) -> None:
        """Note what a server will take whose pod isn't shown yet; None if it is, or won't come."""
        self._set(self._reserved, key, charge)

    def of_owner(self, owners: Iterable[Who]) -> dict[Key, Charges]:
        """Return the servers of one owner, as charges name them."""
        return {key: self._charges(key) for key in self._by_owner.find(owners)}

    def of_group(self, group: str, members: Iterable[Who]) -> dict[Key, Charges]:
        """Return the servers that were charged to a group, and those of its members."""
        found = self._by_group.find({group}) | self._by_owner.find(members)
        return {key: self._charges(key) for key in found}

    def _charges(self, key: Key) -> Charges:
        found = self._pods.get(key), self._reserved.get(key)
        return tuple(charge for charge in found if charge is not None)

    def _set(self, store: dict[Key, Charge], key: Key, charge: Charge | None) -> None:
        before = self._charges(key)
        if charge is None:
            store.pop(key, None)
        else:
            store[key] = charge
        after = self._charges(key)
        if before == after:
            return
        self.version += 1
        self._by_owner.change(key, before, after)
        self._by_group.change(key, before, after)
        for call in self._listeners:
            call(key, after)

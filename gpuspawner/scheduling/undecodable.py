"""The objects of a cluster that can't be decoded; verdicts that depend on one are unknown."""

from collections.abc import Iterable, Iterator

import msgspec

from gpuspawner.kube.objects import Undecodable

from .storage_index import drop_from, object_key


class UndecodableObjects:
    """Undecodable objects by kind and key, and pods also by node."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str], Undecodable] = {}
        self._pods: dict[str | None, dict[str, Undecodable]] = {}

    def __iter__(self) -> Iterator[Undecodable]:
        return iter(self._all.values())

    def __bool__(self) -> bool:
        return bool(self._all)

    def pods_on(self, node: str) -> Iterable[Undecodable]:
        """Return the pods on a node."""
        return self._pods.get(node, {}).values()

    def keys(self, kind: str) -> Iterator[str]:
        """Yield the keys that a kind has now; objects of any kind may change meanwhile."""
        return iter([key for other_kind, key in self._all if other_kind == kind])

    def put(self, thing: Undecodable) -> None:
        """Store the newest version of an object."""
        key = object_key(thing.kind, thing.namespace, thing.name)
        other = None if thing.name else self._all.get((thing.kind, key))
        if other is not None and other.node != thing.node:
            # Pods without a name share a key, so one entry now concerns several nodes.
            thing = msgspec.structs.replace(thing, node=None)
        self.discard(thing.kind, key)
        self._all[thing.kind, key] = thing
        if thing.kind == "Pod":
            self._pods.setdefault(thing.node, {})[key] = thing

    def discard(self, kind: str, key: str) -> bool:
        """Drop an object; return whether there was one."""
        gone = self._all.pop((kind, key), None)
        if gone is not None and kind == "Pod":
            drop_from(self._pods, gone.node, key)
        return gone is not None

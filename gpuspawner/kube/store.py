"""Objects of several kinds, as the live view has read them."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeVar

from .meta import Key
from .objects import AnyObject, Undecodable

_T = TypeVar("_T")


class ObjectStore:
    """The objects by kind, with the same methods as the cluster's state for a view to write it.

    A kind is known once it was listed, even if it has no objects; an API that the cluster lacks
    counts as listed.

    Attributes:
        version: Increases with every change.
    """

    def __init__(self) -> None:
        self.version = 0
        self._known: set[str] = set()
        self._objects: dict[str, dict[Key, AnyObject | Undecodable]] = {}
        self._unreadable: defaultdict[str, set[Key]] = defaultdict(set)

    def known(self, kind: str) -> bool:
        """Return whether all objects of a kind are known."""
        return kind in self._known

    def has_had(self, kind: str) -> bool:
        """Return whether there has ever been an object of a kind."""
        return kind in self._objects

    def mark_known(self, kind: str) -> None:
        """Record that all objects of a kind have been put."""
        self._known.add(kind)
        self.version += 1

    def mark_unknown(self, kind: str) -> None:
        """Record that objects of a kind may be missing or outdated."""
        self._known.discard(kind)
        self.version += 1

    def put(self, thing: AnyObject | Undecodable) -> None:
        """Store the newest version of an object."""
        if isinstance(thing, Undecodable):
            kind, key = thing.kind, (thing.namespace, thing.name)
            self._unreadable[kind].add(key)
        else:
            kind, key = type(thing).__name__, thing.metadata.key
            self._unreadable[kind].discard(key)
        self._objects.setdefault(kind, {})[key] = thing
        self.version += 1

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Drop an object, if it exists."""
        if self._objects.get(kind, {}).pop((namespace, name), None) is not None:
            self._unreadable[kind].discard((namespace, name))
            self.version += 1

    def keys(self, kind: str) -> Iterator[Key]:
        """Yield (namespace, name) of all objects of a kind, which must not change meanwhile."""
        yield from self._objects.get(kind, {})

    def find(self, type_: type[_T], name: str, namespace: str = "") -> _T | None:
        """Return an object; None if there is none that can be read."""
        found = self._objects.get(type_.__name__, {}).get((namespace, name))
        return found if isinstance(found, type_) else None

    def every(self, type_: type[_T]) -> list[_T]:
        """Return the objects of a kind that can be read."""
        found = self._objects.get(type_.__name__, {}).values()
        return [it for it in found if isinstance(it, type_)]

    def unreadable(self, kind: str) -> bool:
        """Whether an object of a kind can't be read."""
        return bool(self._unreadable.get(kind))

"""Which nodes have some of a device left: few, when people wait for it."""

from collections.abc import Set as AbstractSet

from .node_info import NodeInfo, PodInfo
from .node_resources_fit import Asked
from .requests import is_device

_NONE: frozenset[str] = frozenset()


class SpareDevices:
    """The nodes by resource; maybe also some that have none left, or that are gone."""

    def __init__(self) -> None:
        self._nodes: dict[str, set[str]] = {}
        self._unread: set[str] = set()

    def on(self, resource: str) -> AbstractSet[str]:
        """Return the names of all nodes that may have some of a resource left."""
        found = self._nodes.get(resource, _NONE)
        return found | self._unread if self._unread else found

    def for_pod(self, asked: Asked) -> AbstractSet[str] | None:
        """Return the nodes that may have a device left that a pod asks for; None if it asks none.

        Of several devices, the first one counts.
        """
        resource = asked[0][0] if asked else ""
        return self.on(resource) if is_device(resource) else None

    def note_pod(self, node: NodeInfo, pod: PodInfo) -> None:
        """Note what is left on a node after a pod has come to it or gone."""
        if any(map(is_device, pod.requested)):
            self.note(node)

    def note(self, node: NodeInfo) -> None:
        """Note what is left on a node after it has changed; pods may have a node that is gone."""
        if node.node is None:
            return
        if node.problem:
            self._unread.add(node.name)
        else:
            self._unread.discard(node.name)
        for resource, amount in node.free.items():
            if is_device(resource):
                if amount > 0:
                    self._nodes.setdefault(resource, set()).add(node.name)
                elif resource in self._nodes:
                    self._nodes[resource].discard(node.name)

    def drop(self, node: str) -> None:
        """Forget a node."""
        for names in (self._unread, *self._nodes.values()):
            names.discard(node)

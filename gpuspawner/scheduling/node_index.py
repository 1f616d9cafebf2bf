"""All nodes with their pods, and what is looked up about them: kinds, spare devices, images."""

from collections.abc import Set as AbstractSet

from gpuspawner.kube.nodes import Node

from .node_images import NodeImages
from .node_info import NodeInfo, PodInfo
from .node_kinds import NodeKinds
from .node_resources_fit import Asked
from .requests import is_device

_NONE: frozenset[str] = frozenset()


class NodeIndex:
    """The nodes by name. Pods may come before their node, and stay after it."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeInfo] = {}
        self.startup_taints: frozenset[str] = frozenset()
        self._homeless: dict[str, NodeInfo] = {}
        """Pods of unknown nodes, by the name of the node."""
        self.kinds = NodeKinds()
        self.spare = SpareDevices()
        self.images = NodeImages()

    def put(self, node: Node) -> bool:
        """Store a node's newest version; return whether a field that decides has changed."""
        name = node.metadata.name
        self.images.put(name, node.status.images or ())
        info = self.nodes.get(name)
        if info is None:
            info = self._homeless.pop(name, None) or NodeInfo(name)
            self.nodes[name] = info
        if not info.set_node(node.without_images(), self.startup_taints):
            return False
        self.spare.note(info)
        self.kinds.put(info)
        return True

    def expect(self, startup_taints: frozenset[str]) -> None:
        """As `NodeInfo.expect`, for all nodes, those to come too."""
        self.startup_taints = startup_taints
        for info in self.nodes.values():
            info.expect(startup_taints)

    def drop(self, name: str) -> bool:
        """Forget a node, but not its pods; return whether it was known."""
        info = self.nodes.pop(name, None)
        if info is None:
            return False
        self.images.drop(name)
        self.spare.drop(name)
        self.kinds.drop(name)
        if info.pods:
            info.node = None
            self._homeless[name] = info
        return True

    def add(self, pod: PodInfo) -> None:
        """Count a pod on its node that isn't counted yet."""
        home = self.nodes.get(pod.node) or self._homeless.get(pod.node)
        if home is None:
            home = self._homeless[pod.node] = NodeInfo(pod.node)
        home.add(pod)
        self.spare.note_pod(home, pod)

    def discard(self, pod: PodInfo) -> None:
        """Stop counting a pod that is counted."""
        home = self.nodes.get(pod.node) or self._homeless[pod.node]
        home.discard(pod.key)
        self.spare.note_pod(home, pod)
        if not home.pods:
            self._homeless.pop(pod.node, None)


class SpareDevices:
    """Which nodes have some of a device left: few, when people wait for it.

    Maybe also some that have none left, or that are gone.
    """

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

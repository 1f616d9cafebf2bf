"""All nodes with their pods, and what is looked up about them: kinds, spare devices, images."""

from gpuspawner.kube.nodes import Node

from .node_images import NodeImages
from .node_info import NodeInfo, PodInfo
from .node_kinds import NodeKinds
from .spare_devices import SpareDevices


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
            info = self._homeless.pop(name) if name in self._homeless else NodeInfo(name)
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

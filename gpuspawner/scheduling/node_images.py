"""The images that the nodes list. No verdict depends on them: kube-scheduler only scores by them.

A kubelet lists at most 50 images by default (`nodeStatusMaxImages`), the largest first. So an image
that a node doesn't list may be on it nevertheless.
"""

from collections.abc import Iterable

import msgspec

from gpuspawner.kube.caches import Recent
from gpuspawner.kube.images import canonical
from gpuspawner.kube.nodes import NodeImage

_MOST_FOLLOWED = 1024
"""Users may enter images of their own."""


class _Listed(msgspec.Struct):
    """An image by one of its names.

    Attributes:
        size: The largest that a node has told.
        count: How many nodes list it.
        nodes: Their names, once somebody has asked.
    """

    name: str
    size: int = 0
    count: int = 0
    nodes: set[str] | None = None


class NodeImages:
    """Which nodes list an image, and how large it is.

    A large cluster has half a million names on its nodes, and a hub offers a few of them. So only
    images that somebody has asked about have a set of their nodes, which `put` keeps up to date.

    Attributes:
        version: Increases with every change of the nodes of such an image.
    """

    def __init__(self) -> None:
        self.version = 0
        self._of_node: dict[str, tuple[str, ...]] = {}
        self._listed: dict[str, _Listed] = {}
        self._followed: dict[str, None] = {}
        self._answers = Recent[tuple[str, ...], frozenset[str]](_MOST_FOLLOWED)

    def put(self, node: str, images: Iterable[NodeImage]) -> None:
        """Store what a node lists now."""
        sizes = {canonical(name): it.size_bytes for it in images for name in it.names or ()}
        known, names = self._of_node.get(node, ()), tuple(sizes)
        if names == known:
            return
        for name in set(known).difference(names):
            self._remove(node, name)
        for name in set(names).difference(known):
            self._add(node, name, sizes[name])
        if names:
            self._of_node[node] = tuple(self._listed[name].name for name in names)  # the same texts
        else:
            del self._of_node[node]

    def drop(self, node: str) -> None:
        """Forget a node."""
        self.put(node, ())

    def nodes(self, image: str, *others: str) -> frozenset[str]:
        """Return the nodes that list an image, by any of its names, and all the others."""
        asked = (image, *others)
        if asked not in self._answers:
            every = (self._nodes(canonical(it)) for it in asked)
            self._answers[asked] = frozenset(next(every)).intersection(*every)
        return self._answers[asked]

    def size(self, image: str) -> int | None:
        """Return the size of an image in bytes; None if no node tells it."""
        listed = self._listed.get(canonical(image))
        return listed.size or None if listed else None

    def _nodes(self, name: str) -> set[str]:
        listed = self._listed.setdefault(name, _Listed(name))
        if listed.nodes is None:
            listed.nodes = self._search(name) if listed.count else set()
            self._follow(name)
        return listed.nodes

    def _search(self, name: str) -> set[str]:
        return {node for node, names in self._of_node.items() if name in names}

    def _follow(self, name: str) -> None:
        self._followed[name] = None
        if len(self._followed) > _MOST_FOLLOWED:
            oldest = next(iter(self._followed))
            del self._followed[oldest]
            self._listed[oldest].nodes = None
            self._answers.clear()  # nobody would keep them up to date
            self._forget_if_gone(oldest)

    def _add(self, node: str, name: str, size: int) -> None:
        listed = self._listed.setdefault(name, _Listed(name))
        listed.count += 1
        listed.size = max(listed.size, size)
        if listed.nodes is not None:
            listed.nodes.add(node)
            self._changed()

    def _remove(self, node: str, name: str) -> None:
        listed = self._listed[name]
        listed.count -= 1
        if listed.nodes is not None:
            listed.nodes.discard(node)
            self._changed()
        self._forget_if_gone(name)

    def _changed(self) -> None:
        self.version += 1
        self._answers.clear()

    def _forget_if_gone(self, name: str) -> None:
        listed = self._listed[name]
        if not listed.count:
            listed.size = 0
            if listed.nodes is None:
                del self._listed[name]

"""Where a server's files are and where it would have room, if these are different places."""

from collections.abc import Collection

import msgspec

from gpuspawner.scheduling.node_info import NodeInfo

_ZONE = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


class Apart(msgspec.Struct, frozen=True):
    """The nodes that reach a pod's volumes, and others that would hold the pod without them.

    Attributes:
        files, room: Names of zones, or of nodes if the zones aren't different; no node may reach
            the volumes.
        is_free: Whether there is room at this moment.
    """

    files: tuple[str, ...]
    room: tuple[str, ...]
    are_zones: bool
    is_free: bool = False

    @classmethod
    def of(
        cls, files: Collection[NodeInfo], room: Collection[NodeInfo], *, is_free: bool = False
    ) -> "Apart":
        """Name the places."""
        here, there = ({_zone(node) for node in nodes} for nodes in (files, room))
        are_zones = bool(here) and "" not in here | there and here.isdisjoint(there)
        if not are_zones:
            here, there = ({node.name for node in nodes} for nodes in (files, room))
        return cls(tuple(sorted(here)), tuple(sorted(there)), are_zones, is_free)


def _zone(node: NodeInfo) -> str:
    return next((node.labels[it] for it in _ZONE if it in node.labels), "")

"""Host ports: plugin NodePorts. Source: `HostPortInfo.CheckConflict` (kube-scheduler v0.36.2)."""

from collections.abc import Iterable

from .node_info import ANY_IP, HostPort, PodInfo


def are_taken(wanted: tuple[HostPort, ...], pods: Iterable[PodInfo]) -> bool:
    """Return whether one of the pods uses a wanted host port."""
    return any(
        theirs[1:] == mine[1:] and (theirs[0] == mine[0] or ANY_IP in (theirs[0], mine[0]))
        for pod in pods
        for theirs in pod.ports
        for mine in wanted
    )

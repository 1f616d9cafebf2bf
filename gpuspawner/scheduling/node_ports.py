"""Host ports: plugin NodePorts. Source: `HostPortInfo.CheckConflict` (kube-scheduler v0.36.2)."""

from collections.abc import Iterable

from .failures import PortTaken
from .node_info import ANY_IP, HostPort, PodInfo


def taken(wanted: tuple[HostPort, ...], pods: Iterable[PodInfo]) -> PortTaken | None:
    """Return a wanted host port that one of the pods uses; None if all are free."""
    for pod in pods:
        for ip, protocol, port in pod.ports:
            for wanted_ip, wanted_protocol, wanted_port in wanted:
                if (
                    port == wanted_port
                    and protocol == wanted_protocol
                    and (ip == wanted_ip or ANY_IP in (ip, wanted_ip))
                ):
                    return PortTaken(protocol, port)
    return None

"""Host ports: plugin NodePorts. Sources: `GetHostPorts`, `HostPortInfo.CheckConflict` (v0.36.2)."""

from collections.abc import Iterable

from gpuspawner.kube.pods import Pod

from .requests import restarts
from .rules import Rules

ANY_IP = "0.0.0.0"  # noqa: S104 (nothing is bound here)

HostPort = tuple[str, str, int]
"""IP (`ANY_IP` for all), protocol, port."""


def host_ports(pod: Pod, rules: Rules) -> tuple[HostPort, ...]:
    """Return the host ports of a pod, by newer rules those of its sidecars too.

    With `hostNetwork`, every port is a host port: the API server sets this default.
    """
    counted = rules.sidecar_ports
    sidecars = [c for c in pod.spec.init_containers or () if counted and restarts(c)]
    on_host = pod.spec.host_network
    numbered = (
        (port, port.host_port or (port.container_port if on_host else 0))
        for container in sidecars + (pod.spec.containers or [])
        for port in container.ports or ()
    )
    return tuple(
        (port.host_ip or ANY_IP, port.protocol or "TCP", number)
        for port, number in numbered
        if number > 0
    )


def are_taken(wanted: tuple[HostPort, ...], used: Iterable[HostPort]) -> bool:
    """Return whether a wanted host port is in use."""
    return any(
        theirs[1:] == mine[1:] and (theirs[0] == mine[0] or ANY_IP in (theirs[0], mine[0]))
        for theirs in used
        for mine in wanted
    )

"""What a node runs short of, as its annotations say. No input or output.

The conditions are those of pkg/kubelet/nodestatus/setters.go (v1.36.2). The thresholds are a
kubelet's defaults: 100Mi of memory, and a tenth of the disk, which here has 100 GB.
"""

from dataclasses import dataclass

from localcluster.agent.api import Object
from localcluster.nodes import LOW_DISK, LOW_MEMORY


@dataclass(frozen=True)
class Pressure:
    """One thing that a node may run short of.

    Attributes:
        annotation: the node's annotation that says how much is left.
        condition: the node's condition that says whether it is short of it.
        resource: what the kubelet's messages call it.
        threshold: the kubelet evicts pods if less is left.
        when_low: the condition's reason and message if it is True.
        when_well: those if it is False.
    """

    annotation: str
    condition: str
    resource: str
    threshold: str
    when_low: tuple[str, str]
    when_well: tuple[str, str]


MEMORY = Pressure(
    LOW_MEMORY,
    "MemoryPressure",
    "memory",
    "100Mi",
    ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
)
DISK = Pressure(
    LOW_DISK,
    "DiskPressure",
    "ephemeral-storage",
    "10000000000",
    ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
)
#: The first is what a kubelet evicts pods for if a node is short of more than one.
PRESSURES = (MEMORY, DISK)


@dataclass(frozen=True)
class Shortage:
    """A node has only so much left of something, such as 60Mi."""

    pressure: Pressure
    left: str


def shortages(node: Object) -> tuple[Shortage, ...]:
    """Return what a node is short of."""
    annotations = node["metadata"].get("annotations", {})
    return tuple(
        Shortage(pressure, annotations[pressure.annotation])
        for pressure in PRESSURES
        if annotations.get(pressure.annotation)
    )

"""A group of nodes at the cloud: its nodes, the machines on their way, and its back-off."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from localcluster.client import Object
from localcluster.clusterautoscaler.settings import Scaling
from localcluster.fleet import NodeGroup
from localcluster.nodes import GROUP, is_device


@dataclass(frozen=True)
class Machine:
    """A machine that was requested and isn't a node yet."""

    name: str
    requested: float
    is_in_stock: bool


@dataclass
class Backoff:
    """How long a group is left alone after failures."""

    first: float
    longest: float
    until: float = 0.0
    _duration: float = 0.0

    def fail(self, now: float) -> None:
        """Leave the group alone, twice as long as the last time."""
        if now >= self.until:
            self._duration = min(self._duration * 2 or self.first, self.longest)
        self.until = now + self._duration

    def reset(self) -> None:
        """Forget all failures."""
        self.until = self._duration = 0.0


@dataclass
class Group:
    """A group of nodes that the autoscaler may change."""

    shape: NodeGroup
    scaling: Scaling
    backoff: Backoff
    nodes: list[Object] = field(default_factory=list)
    machines: list[Machine] = field(default_factory=list)
    is_growing: bool = False
    """Whether a request for nodes isn't fulfilled yet."""

    @property
    def name(self) -> str:
        """The group's name."""
        return self.shape.name

    @property
    def target(self) -> int:
        """How many nodes the cloud is asked to run."""
        return len(self.nodes) + len(self.machines)

    @property
    def room(self) -> int:
        """How many more nodes may be requested."""
        return max(0, self.scaling.max_size - self.target)

    def see(self, nodes: Sequence[Object]) -> None:
        """Take over the group's nodes as the API server has them."""
        self.nodes = [node for node in nodes if _group_of(node) == self.name]
        names = {node["metadata"]["name"] for node in self.nodes}
        self.machines = [machine for machine in self.machines if machine.name not in names]
        if self.is_growing and not self.machines and not self.starting():
            self.is_growing = False
            self.backoff.reset()

    def ready(self) -> list[Object]:
        """Return the nodes that are Ready with all their devices."""
        return [node for node in self.nodes if self._is_ready(node)]

    def starting(self) -> list[Object]:
        """Return the nodes that registered and aren't ready yet."""
        return [node for node in self.nodes if not self._is_ready(node)]

    def upcoming(self, now: float) -> int:
        """Return how many nodes are on their way; none of them counts during a back-off."""
        if not self.is_growing or now < self.backoff.until:
            return 0
        return len(self.machines) + len(self.starting())

    def request(self, count: int, now: float) -> None:
        """Ask the cloud for more machines."""
        taken = {node["metadata"]["name"] for node in self.nodes}
        taken |= {machine.name for machine in self.machines}
        names = (f"{self.name}-{number}" for number in itertools.count())
        free = (name for name in names if name not in taken)
        for name in itertools.islice(free, count):
            stock = self.scaling.stock
            self.machines.append(Machine(name, now, stock is None or self.target < stock))
        self.is_growing = True

    def due(self, now: float) -> list[Machine]:
        """Return the machines that become nodes now."""
        wait = self.scaling.provision_seconds
        return [m for m in self.machines if m.is_in_stock and now >= m.requested + wait]

    def take_refused(self, now: float) -> list[Machine]:
        """Remove and return the machines that the cloud refuses now, and start the back-off."""
        wait = self.scaling.failure_seconds
        refused = [m for m in self.machines if not m.is_in_stock and now >= m.requested + wait]
        if refused:
            self.machines = [m for m in self.machines if m not in refused]
            self.is_growing = bool(self.machines or self.starting())
            self.backoff.fail(now)
        return refused

    def _is_ready(self, node: Object) -> bool:
        conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", [])}
        allocatable = node["status"].get("allocatable", {})
        return conditions.get("Ready") == "True" and all(
            allocatable.get(resource, "0") != "0"
            for resource, quantity in self.shape.allocatable.items()
            if is_device(resource, quantity)
        )


def _group_of(node: Object) -> str:
    return str(node["metadata"].get("annotations", {}).get(GROUP, ""))

"""Whether pods that are on their way can take each other's room.

Where the scheduler will put a pod that is not bound yet is its own affair (scoring, ties and order
are not known here). So a promise is made only where it holds wherever the others land: assume that
they do their worst, and see whether a node is left.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.requests import PODS, Amounts


@dataclass(frozen=True, slots=True)
class Demand:
    """The room that a pod on its way may take at any moment.

    Attributes:
        requests: What it asks for, itself as one of ``pods`` included.
        nodes: The names of the nodes it fits on now; None where that is not known.
        simple: Whether its landing changes nothing for other pods but the amounts it takes. Host
            ports, affinity to pods, spread and preemption are not simple.
    """

    requests: Amounts
    nodes: frozenset[str] | None
    simple: bool = True

    def touches(self, other: "Demand") -> bool:
        """Whether there may be a node that both can land on."""
        if self.nodes is None or other.nodes is None:
            return True
        return not self.nodes.isdisjoint(other.nodes)

    def covers(self, other: "Demand") -> bool:
        """Whether a promise to this demand is one to the other as well."""
        return (
            self.nodes is not None
            and self.nodes == other.nodes
            and self.simple == other.simple
            and all(amount <= self.requests.get(r, 0) for r, amount in other.requests.items())
        )


def requests_with_pod(asked: Amounts) -> Amounts:
    """What the scheduler compares: the requests that are not zero, and one place for a pod."""
    return {PODS: 1, **{resource: amount for resource, amount in asked.items() if amount > 0}}


def is_certain(demand: Demand, others: Iterable[Demand], nodes: Mapping[str, NodeInfo]) -> bool:
    """Whether the demand keeps a node however the others land.

    To keep a pod off a node, others must take so much of one resource there that less than it asks
    is left. Fewer others than nodes cannot do that everywhere. Else each resource they ask for is a
    budget, and the nodes that are cheapest to fill are filled first: if even so not all can be, one
    is left. This never promises too much: in truth a budget can rarely be spent that well.

    Args:
        demand: A simple demand whose nodes are known.
        others: All other demands that may land before it.
        nodes: What is free on each node now.
    """
    near = [other for other in others if demand.touches(other)]
    if not near:
        return True
    if demand.nodes is None or not demand.simple or not all(other.simple for other in near):
        return False
    if len(near) < len(demand.nodes):
        return True
    filled = sum(
        _most_filled(
            [nodes[name].free.get(resource, 0) - asked + 1 for name in demand.nodes],
            sum(other.requests.get(resource, 0) for other in near),
        )
        for resource, asked in demand.requests.items()
    )
    return filled < len(demand.nodes)


def _most_filled(prices: list[int], budget: int) -> int:
    """How many nodes a budget can fill at most, each at its price."""
    filled = 0
    for price in sorted(prices):
        budget -= price
        if budget < 0:
            break
        filled += 1
    return filled

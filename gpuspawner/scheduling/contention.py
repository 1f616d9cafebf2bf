"""Whether unbound pods can take each other's room.

We can't predict where the scheduler puts an unbound pod: its scoring, its ties and its order aren't
known here. So a promise is made only if a node is left after the worst placement of the others.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate

import msgspec

from .node_info import NodeInfo
from .requests import PODS, Amounts


class Demand(msgspec.Struct, frozen=True):
    """The room that an unbound pod may take at any moment.

    Attributes:
        requests: What it requests, including 1 of ``pods`` for itself.
        nodes: The names of the nodes it fits on now; None if that isn't known.
        simple: Whether its binding affects other pods only by the amounts it takes. Pods with host
            ports, pod affinity or topology spread aren't simple.
        alone: The claims, by namespace/name, for which only one pod can get room at a time:
            ReadWriteOncePod ones, and those whose volumes come to the nodes of the first.
        volumes: Each of its claims that takes one of the volumes that are there, by namespace/name,
            with the names of those that it can take. Pods with one claim take one volume.
        below: If it fits on no node before others end: the priority below which pods make way for
            it, on each of its nodes. However many make way, it takes no more than it requests. Also
            of a nominated pod, if others may still end for it.
        nominated: Of a nominated pod: its priority. Only others up to that one wait for it.
        priority: Its priority, if it may end pods of a lower one; None if not, or nobody knows.
        attachable: How many volumes each of its nodes can have, by node and CSI driver: drivers
            without a limit there are left out. If a node has one, ``requests`` has the number of
            the pod's volumes by the name of the driver, too.
        follows: Whether it fits on no node and may end no pods, but takes what others free.
    """

    requests: Amounts
    nodes: frozenset[str] | None
    simple: bool = True
    alone: frozenset[str] = frozenset()
    volumes: tuple[tuple[str, frozenset[str]], ...] = ()
    below: int | None = None
    nominated: int | None = None
    priority: int | None = None
    attachable: Mapping[str, Mapping[str, int]] = {}
    follows: bool = False

    def touches(self, other: "Demand") -> bool:
        """Whether there may be a node that both fit on, or a volume that both can take."""
        if self.nodes is None or other.nodes is None or not self.nodes.isdisjoint(other.nodes):
            return True
        return any(not it.isdisjoint(its) for _, it in self.volumes for _, its in other.volumes)

    def has_volumes(self, others: Iterable["Demand"]) -> bool:
        """Whether a volume is left for each of its claims, whichever the others take."""
        if not self.volumes:
            return True
        taken: dict[str, frozenset[str]] = {}
        for claim, them in (pair for one in (*others, self) for pair in one.volumes):
            taken[claim] = taken[claim] | them if claim in taken else them
        return all(
            len(it) >= sum(not it.isdisjoint(its) for its in taken.values())
            for _, it in self.volumes
        )

    def excludes(self, other: "Demand") -> bool:
        """Whether only one of both can be promised room, wherever they land."""
        return not self.alone.isdisjoint(other.alone)

    def outranks(self, other: "Demand") -> bool:
        """Whether it need not wait for another that ends pods: it could end that one, too.

        Nor does the scheduler count nominated pods of a lower priority
        (`RunFilterPluginsWithNominatedPods`).
        """
        theirs = other.below if other.nominated is None else other.nominated
        return self.priority is not None and theirs is not None and theirs < self.priority

    def covers(self, other: "Demand") -> bool:
        """Whether a promise to this demand also covers the other."""
        return (
            self.nodes is not None
            and self.nodes == other.nodes
            and self.simple == other.simple
            and self.below == other.below
            and self.priority == other.priority
            and self.volumes == other.volumes
            and self.alone >= other.alone
            and all(amount <= self.requests.get(r, 0) for r, amount in other.requests.items())
        )


def requests_with_pod(asked: Amounts) -> Amounts:
    """Return what the scheduler compares: the requests above zero, and 1 of ``pods``."""
    return {PODS: 1, **{resource: amount for resource, amount in asked.items() if amount > 0}}


def is_certain(demand: Demand, others: Collection[Demand], nodes: Mapping[str, NodeInfo]) -> bool:
    """Whether a node is left for the demand wherever the others land.

    To keep a pod off a node, others must take so much of one resource there that less than the pod
    requests is left. If there are fewer others than nodes, they can't do that on every node. If
    not, treat the others' sum of each resource as a budget, and fill the cheapest nodes first: if
    even that doesn't fill all nodes, one is left. No real placement fills more.
    """
    others = [other for other in others if not demand.outranks(other)]
    near = [other for other in others if demand.touches(other) and not other.follows]
    # More may end than is taken, and then those that fit elsewhere now fit there too, or those that
    # follow. Of what the pod itself ends, nominated as it is, only those of a higher priority take
    # something.
    ends = any(it.below is not None for it in near)
    if ends or demand.below is not None:
        near += [
            it
            for it in others
            if it.below is None
            and it.nominated is None  # its node is chosen
            and demand.touches(it) is it.follows
            and (ends or it.priority is None or it.outranks(demand))
        ]
    if not near:
        return True
    if demand.nodes is None or not demand.simple or not all(other.simple for other in near):
        return False
    if not demand.has_volumes(near):
        return False
    if len(near) < len(demand.nodes):
        return True
    rooms = [_room(nodes[name], demand) for name in demand.nodes]
    prices = [
        {it: room[it] - asked + 1 for it, asked in demand.requests.items() if it in room}
        for room in rooms
    ]
    taken = {it: [other.requests.get(it, 0) for other in near] for it in demand.requests}
    filled = sum(
        _most_filled([its[it] for its in prices if it in its], sum(amounts))
        for it, amounts in taken.items()
    )
    most = {it: max(*amounts, 1) for it, amounts in taken.items()}
    pods = [min(-(-price // most[it]) for it, price in its.items()) for its in prices]
    return min(filled, _most_filled(pods, len(near))) < len(rooms)


def all_keep_room(
    demand: Demand, promised: list[Demand], pending: list[Demand], nodes: Mapping[str, NodeInfo]
) -> bool:
    """Whether every promise holds wherever the pods land, with this demand as one more."""
    if any(map(demand.excludes, promised + pending)):
        return False
    mine, everyone = [*promised, demand], [*promised, demand, *pending]
    # What one ends makes room for any; see `is_certain`.
    follows = demand.below is None and any(it.below is not None for it in everyone)
    # Of demands that differ at most in their claims, it is enough to look at one.
    different = {(id(it.requests), *(its for _, its in it.volumes)): it for it in mine}
    return all(
        is_certain(one, all_but(one, everyone), nodes)
        for one in different.values()
        if one is demand or (one.nodes is not None and (follows or one.touches(demand)))
    )


def _room(node: NodeInfo, demand: Demand) -> Amounts:
    below, volumes = demand.below, demand.attachable.get(node.name, {})
    room = node.free if below is None else node.below(below).free
    return {**room, **volumes} if volumes else room


def all_but(one: Demand, demands: list[Demand]) -> list[Demand]:
    """Return the demands of the other pods; equal ones, which may be one object, stay."""
    place = next(i for i, it in enumerate(demands) if it is one)
    return demands[:place] + demands[place + 1 :]


def _most_filled(prices: list[int], budget: int) -> int:
    """The largest number of nodes that a budget can fill, each at its price."""
    return bisect_right([*accumulate(sorted(prices))], budget)

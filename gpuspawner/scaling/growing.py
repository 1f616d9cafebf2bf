"""Whether pools that can grow bring a node for a pod, beside the pods that wait for one too."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from gpuspawner.scaling.new_nodes import Future, Judged, could_serve, is_beyond, is_served
from gpuspawner.scaling.node_pool import Growth, Machine
from gpuspawner.scaling.outlook import (
    CannotScaleUp,
    CanScaleUp,
    MayScaleUp,
    Obstacle,
    Outlook,
    Source,
    WhyNoNode,
)
from gpuspawner.scheduling.contention import Demand, all_but, is_certain
from gpuspawner.scheduling.device_claims import may_serve
from gpuspawner.scheduling.verdicts import Subject, Verdicts, is_simple

# Thousands of pods of a batch system may be pending; then nobody can tell who gets the next node.
MOST_WAITING = 256


def outlook(
    growths: Sequence[Growth], pod: Judged, waiting: Sequence[Subject], verdicts: Verdicts
) -> Outlook:
    """Return whether one of these pools brings a node for the pod.

    Raises:
        QuantityError, SelectorError, UNDECODABLE: A waiting pod can't be evaluated.
    """
    futures = [Future.of(growth, pod, len(waiting) + 1) for growth in growths]
    certain = [it.growth for it in futures if any(map(pod.holds, it.slots))]
    possible = [it.growth for it in futures if it.is_possible]
    if not certain and not possible:
        return CannotScaleUp(tuple(it.obstacle for it in futures if it.obstacle))
    if len(waiting) <= MOST_WAITING:
        others = _alike(waiting, pod, verdicts)
        if certain and _is_left(pod, others, futures):
            best = certain[0]
            return CanScaleUp(best.nodes, best.max_nodes, best.minutes, best.source, best.pool)
        if _is_full(pod, others, futures, verdicts):
            return CannotScaleUp((Obstacle(WhyNoNode.TAKEN, (certain or possible)[0].pool),))
    best = max(certain or possible, key=lambda growth: growth.requested)
    is_on_its_way = best.requested > 0 or bool(best.coming)
    is_listed = any(it.is_listed for it in certain or possible)
    return MayScaleUp(best.source, best.minutes, is_on_its_way, is_listed)


_Others = Sequence[tuple[Judged, int]]
"""How many pods wait that need the same of a new node, each kind once."""


def _alike(waiting: Iterable[Subject], pod: Judged, verdicts: Verdicts) -> _Others:
    """Prepare the others; the servers of a class differ only in their claims."""
    kinds: dict[object, tuple[Judged, int]] = {}
    for subject in waiting:
        shape = verdicts.shape_on_new_nodes(subject)
        judged, number = kinds.get(shape) or (Judged.of(pod.exact.state, subject), 0)
        kinds[shape] = judged, number + 1
    return [*kinds.values()]


def after(refused: Mapping[Source | None, Obstacle], growth: Growth) -> Growth:
    """Return what is left of a pool after a no: nodes on their way, for other pods of the kind.

    If a pod has waited for its whole time, nodes on their way don't help, either. Else a pool's own
    obstacle stays: an autoscaler's answer about a pod may be about other pools.
    """
    if None in refused:
        return replace(growth, obstacle=refused[None], coming=(), requested=0)
    obstacle = growth.obstacle or refused.get(growth.source)
    return replace(growth, obstacle=obstacle, requested=0) if growth.source in refused else growth


def leaves_open(seen: MayScaleUp | CannotScaleUp) -> bool:
    """Whether a declared pool may be another one than those that the hub sees."""
    return isinstance(seen, MayScaleUp) or all(
        it.why is WhyNoNode.NO_SUCH_MACHINE for it in seen.obstacles
    )


def _is_left(pod: Judged, others: _Others, futures: Sequence[Future]) -> bool:
    """Whether a node is left for the pod, wherever the others land, and still for each of them."""
    slots = {
        f"{number}/{place}": slot
        for number, future in enumerate(futures)
        for place, slot in enumerate(future.slots)
    }
    nodes = {name: slot.node for name, slot in slots.items()}
    mine = pod.demand(slots)
    different = [(_demand(it, slots, futures), number) for it, number in others]
    demands = [it for it, number in different for _ in range(number)]
    if any(map(mine.excludes, demands)) or not is_certain(mine, demands, nodes):
        return False
    for one, _ in different:
        if one.nodes and one.touches(mine):
            rest = all_but(one, demands)
            if is_certain(one, rest, nodes) and not is_certain(one, [*rest, mine], nodes):
                return False
    return True


def _demand(other: Judged, slots: Mapping[str, Machine], futures: Sequence[Future]) -> Demand:
    """Return the room that a waiting pod may take of the nodes to come.

    If its pool can make other nodes than those in *slots*, nobody knows how much of the pool's
    limits the pod's node takes, nor whether others have room on it.
    """
    demand = other.demand(slots)
    mixed = [
        number
        for number, it in enumerate(futures)
        if it.slots
        and not it.growth.is_uniform
        and could_serve(it.growth, other)
        and not is_beyond(it.growth, other)
    ]
    if not mixed:
        return demand
    if any(futures[number].growth.rest for number in mixed):
        return Demand({}, None, simple=False)
    starts = tuple(f"{number}/" for number in mixed)
    theirs = frozenset(name for name in slots if name.startswith(starts))
    whole: dict[str, int] = {}
    for name in theirs:
        for resource, amount in slots[name].node.free.items():
            whole[resource] = max(amount, whole.get(resource, 0))
    return Demand(whole, theirs | (demand.nodes or frozenset()), demand.simple, demand.alone)


def _is_full(pod: Judged, others: _Others, futures: Sequence[Future], verdicts: Verdicts) -> bool:
    """Whether the pools can't bring enough for the pod and those that wait for the same nodes.

    Some pods wait for ever: for more than any machine has, for example. So of the others only
    those count that surely get a node if they are alone, or get one if this pod does.
    """
    mine = [it.growth for it in futures if it.serves(pod)]
    elsewhere = [it.growth for it in futures if not it.serves(pod)]
    rivals = [
        (dict(it.exact.asked), number)
        for it, number in others
        if pod.competes_with(it)
        and is_simple(it.exact.pod)
        and not any(could_serve(growth, it) for growth in elsewhere)
        and (any(is_served(growth, it) for growth in mine) or it.is_no_larger(pod, verdicts))
    ]
    return any(
        amount + sum(number * asked.get(resource, 0) for asked, number in rivals)
        > sum(growth.most(resource) for growth in mine)
        for resource, amount in pod.exact.asked
        if not may_serve(pod.exact.state, resource)
    )

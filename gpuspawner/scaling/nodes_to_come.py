"""Whether a node can still come for a pod, beside the pods that already wait for one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.meta import Key
from gpuspawner.reservations.pending_pods import may_be_bound
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scaling.declared import DeclaredPool
from gpuspawner.scaling.new_nodes import Future, Judged, Slot, could_serve
from gpuspawner.scaling.node_pool import Growth
from gpuspawner.scaling.outlook import (
    CannotScaleUp,
    CanScaleUp,
    MayScaleUp,
    Obstacle,
    Outlook,
    Source,
    WhyNoNode,
)
from gpuspawner.scaling.pools import Pools
from gpuspawner.scaling.starting_nodes import is_starting
from gpuspawner.scheduling.contention import Demand, all_but, is_certain
from gpuspawner.scheduling.device_claims import may_serve
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdict import Outcome
from gpuspawner.scheduling.verdicts import Subject, Verdicts

NO_ROOM = (Outcome.BUSY, Outcome.IMPOSSIBLE)

# Thousands of pods of a batch system may be pending; then nobody can tell who gets the next node.
_MOST_WAITING = 256


class NodesToCome:
    """Judges nodes to come by the same rules, and counts them by the same arithmetic, as nodes."""

    def __init__(
        self, state: ClusterState, verdicts: Verdicts, reservations: Reservations, pools: Pools
    ) -> None:
        self._state = state
        self._verdicts = verdicts
        self._reservations = reservations
        self.pools = pools
        self._lacking = UntilChanged[list[Subject]]()

    def outlook(self, key: Key, subject: Subject, declared: DeclaredPool | None) -> Outlook:
        """Return whether a node can come for a pod that no present node can hold now.

        The pools that the hub sees come first, then the administrator's declaration, and at last
        what the nodes betray of pools that the hub doesn't see.

        Raises:
            QuantityError, SelectorError, UNDECODABLE: The pod can't be evaluated; then its verdict
                is unknown, too.
        """
        return self._outlook(subject, declared, partial(self._waiting, key))

    def outlook_alone(self, subject: Subject, declared: DeclaredPool | None) -> Outlook:
        """As `outlook`, if no other pod waited; their verdicts, which may be many, aren't needed.

        Raises:
            QuantityError, SelectorError, UNDECODABLE: As `outlook`.
        """
        return self._outlook(subject, declared, lambda _: ())

    def _outlook(
        self,
        subject: Subject,
        declared: DeclaredPool | None,
        others_than: Callable[[Judged], Sequence[Subject]],
    ) -> Outlook:
        if self._verdicts.verdict(subject).rejected is not None or subject.pod.spec.node_name:
            return CannotScaleUp()  # the reason holds for every node
        shape = self._verdicts.shape_of_needs(subject)
        refused = self.pools.refusals.obstacles(shape, self.pools.about())
        pod = Judged.of(self._state, subject)
        growths = [_after(refused, growth) for growth in self.pools.seen(pod.exact)]
        waiting = others_than(pod) if growths or declared is not None else ()
        seen = self._judge(growths, pod, waiting)
        if isinstance(seen, CanScaleUp):
            return seen
        if declared is not None and not refused and _leaves_open(seen):
            return self._judge([self.pools.declared(declared, pod.exact)], pod, waiting)
        if isinstance(seen, MayScaleUp):
            return seen
        others = None if None in refused else self.pools.others(refused, pod.exact)
        if others is None and None not in refused and self._is_getting_ready(subject, pod):
            return MayScaleUp(Source.NODES, on_its_way=True)
        if others is None:
            return CannotScaleUp(tuple(dict.fromkeys((*refused.values(), *seen.obstacles))))
        minutes = self.pools.usual.minutes("")
        return MayScaleUp(others, minutes, self.pools.is_any_starting(pod.exact))

    def futures(
        self, subject: Subject, declared: DeclaredPool | None, most: int
    ) -> tuple[Future, ...]:
        """Return what each pool of `outlook` can bring for pods like this one, in so many nodes.

        Raises:
            QuantityError, SelectorError, UNDECODABLE: As `outlook`.
        """
        if self._verdicts.verdict(subject).rejected is not None:
            return ()
        shape = self._verdicts.shape_of_needs(subject)
        refused = self.pools.refusals.obstacles(shape, self.pools.about())
        pod = Judged.of(self._state, subject)
        seen = [Future.of(_after(refused, it), pod, most) for it in self.pools.seen(pod.exact)]
        slots = (slot for it in seen for slot in it.slots)
        if declared is None or refused or any(map(pod.holds, slots)):
            return tuple(seen)
        return (*seen, Future.of(self.pools.declared(declared, pod.exact), pod, most))

    @property
    def version(self) -> object:
        """Changes with what the outlook depends on besides the cluster's state."""
        return self.pools.version, self._reservations.version

    def remember(self, subject: Subject, source: Source | None, obstacle: Obstacle) -> None:
        """Remember why no node came for the pod, for pods with the same needs."""
        shape = self._verdicts.shape_of_needs(subject)
        self.pools.refusals.refused(shape, source, obstacle, self.pools.about())

    def _is_getting_ready(self, subject: Subject, pod: Judged) -> bool:
        """Whether a present node will hold the pod that is still starting, whoever has added it."""
        away = self._verdicts.verdict(subject).away
        return any(is_starting(self._state.nodes[name], pod.exact) for name in away)

    def _waiting(self, key: Key, mine: Judged) -> list[Subject]:
        """Return the other pods that wait for a node: those in view, and those to be created.

        Placeholders, say, don't count: the scheduler ends them for a pod of higher priority.
        """
        waits = [it for it in self._in_view() if it.pod.metadata.key != key]
        waits += self._reservations.waiting(besides=key)
        return [it for it in waits if not mine.may_preempt(it.pod)]

    def _in_view(self) -> list[Subject]:
        """Return the pending pods that lack a node: thousands, perhaps, and forms ask often."""
        pending = (Subject(it) for it in self._state.unbound_pods.values() if may_be_bound(it))
        return self._lacking.of(
            self._state.version, (), lambda: [it for it in pending if self._lacks_node(it)]
        )

    def _lacks_node(self, subject: Subject) -> bool:
        """Whether a pending pod needs another node; none helps if a claim is missing or in use."""
        verdict = self._verdicts.verdict(subject)
        return verdict.outcome in NO_ROOM and not (verdict.rejected or verdict.in_use)

    def _judge(self, growths: Sequence[Growth], pod: Judged, waiting: Sequence[Subject]) -> Outlook:
        futures = [Future.of(growth, pod, len(waiting) + 1) for growth in growths]
        certain = [it.growth for it in futures if any(map(pod.holds, it.slots))]
        possible = [it.growth for it in futures if it.is_possible]
        if not certain and not possible:
            return CannotScaleUp(tuple(it.obstacle for it in futures if it.obstacle))
        if len(waiting) <= _MOST_WAITING:
            others = self._judged(waiting)
            if certain and _is_left(pod, others, futures):
                best = certain[0]
                return CanScaleUp(best.nodes, best.max_nodes, best.minutes, best.source, best.pool)
            if _is_full(pod, others, futures):
                return CannotScaleUp((Obstacle(WhyNoNode.TAKEN, (certain or possible)[0].pool),))
        best = max(certain or possible, key=lambda growth: growth.requested)
        is_on_its_way = best.requested > 0 or bool(best.coming)
        is_listed = any(it.is_listed for it in certain or possible)
        return MayScaleUp(best.source, best.minutes, is_on_its_way, is_listed)

    def _judged(self, waiting: Iterable[Subject]) -> list[Judged]:
        """Prepare the others; the servers of a class differ only in their claims."""
        alike: dict[object, Judged] = {}
        judged = []
        for subject in waiting:
            shape = self._verdicts.shape_on_new_nodes(subject)
            if shape not in alike:
                alike[shape] = Judged.of(self._state, subject)
            judged.append(alike[shape])
        return judged


def _after(refused: Mapping[Source | None, Obstacle], growth: Growth) -> Growth:
    """Return what is left of a pool after a no: nodes on their way, for other pods of the kind.

    If a pod has waited for its whole time, nodes on their way don't help, either. Else a pool's own
    obstacle stays: an autoscaler's answer about a pod may be about other pools.
    """
    if None in refused:
        return replace(growth, obstacle=refused[None], coming=(), requested=0)
    obstacle = growth.obstacle or refused.get(growth.source)
    return replace(growth, obstacle=obstacle, requested=0) if growth.source in refused else growth


def _leaves_open(seen: MayScaleUp | CannotScaleUp) -> bool:
    """Whether a declared pool may be another one than those that the hub sees."""
    return isinstance(seen, MayScaleUp) or all(
        it.why is WhyNoNode.NO_SUCH_MACHINE for it in seen.obstacles
    )


def _is_left(pod: Judged, others: Sequence[Judged], futures: Sequence[Future]) -> bool:
    """Whether a node is left for the pod, wherever the others land, and still for each of them."""
    slots = {
        f"{number}/{place}": slot
        for number, future in enumerate(futures)
        for place, slot in enumerate(future.slots)
    }
    nodes = {name: slot.node for name, slot in slots.items()}
    mine = pod.demand(slots)
    alike = {id(it): _demand(it, slots, futures) for it in others}
    demands = [alike[id(it)] for it in others]
    if any(map(mine.excludes, demands)) or not is_certain(mine, demands, nodes):
        return False
    for one in alike.values():
        if one.nodes and one.touches(mine):
            rest = all_but(one, demands)
            if is_certain(one, rest, nodes) and not is_certain(one, [*rest, mine], nodes):
                return False
    return True


def _demand(other: Judged, slots: Mapping[str, Slot], futures: Sequence[Future]) -> Demand:
    """Return the room that a waiting pod may take of the nodes to come.

    If its pool can make other nodes than those in *slots*, nobody knows how much of the pool's
    limits the pod's node takes, nor whether others have room on it.
    """
    demand = other.demand(slots)
    mixed = [
        number
        for number, it in enumerate(futures)
        if it.slots and not it.growth.is_uniform and could_serve(it.growth, other)
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


def _is_full(pod: Judged, others: Iterable[Judged], futures: Sequence[Future]) -> bool:
    """Whether the pools can't bring enough for the pod and those that wait for the same nodes."""
    mine = [it.growth for it in futures if it.serves(pod)]
    elsewhere = [it.growth for it in futures if not it.serves(pod)]
    rivals = [
        it
        for it in others
        if pod.competes_with(it)
        and any(could_serve(growth, it) for growth in mine)
        and not any(could_serve(growth, it) for growth in elsewhere)
    ]
    return any(
        amount + sum(dict(it.exact.asked).get(resource, 0) for it in rivals)
        > sum(growth.most(resource) for growth in mine)
        for resource, amount in pod.exact.asked
        if not may_serve(pod.exact.state, resource)
    )

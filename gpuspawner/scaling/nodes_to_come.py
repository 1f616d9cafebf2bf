"""Whether a node can still come for a pod, beside the pods that already wait for one."""

from itertools import chain, islice
from typing import TYPE_CHECKING

from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.meta import Key
from gpuspawner.reservations.pending_pods import may_be_bound
from gpuspawner.reservations.reservations import Reservations
from gpuspawner.scaling.outlook import (
    CannotScaleUp,
    CanScaleUp,
    MayScaleUp,
    Obstacle,
    Outlook,
    Source,
)
from gpuspawner.scaling.pools import DeclaredPool, Pools
from gpuspawner.scaling.starting_nodes import is_starting, is_young
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.state import ClusterState
from gpuspawner.scheduling.verdicts import Subject, Verdicts, new_claims

if TYPE_CHECKING:
    from gpuspawner.scaling.new_nodes import Future, Judged


class NodesToCome:
    """Judges nodes to come by the same rules, and counts them by the same arithmetic, as nodes."""

    def __init__(
        self, state: ClusterState, verdicts: Verdicts, reservations: Reservations, pools: Pools
    ) -> None:
        self._state = state
        self._verdicts = verdicts
        self._reservations = reservations
        self.pools = pools
        self._pending = UntilChanged[list[Subject]]()
        self._young = UntilChanged[list[str]]()

    def outlook(self, key: Key | None, subject: Subject, declared: DeclaredPool | None) -> Outlook:
        """Return whether a node can come for a pod that no present node can hold now.

        The pools that the hub sees come first, then the administrator's declaration, and at last
        what the nodes betray of pools that the hub doesn't see.

        Without a *key*, which is the pod's, no other pod counts that waits for a node: their
        verdicts, which may be many, aren't needed.

        Raises:
            QuantityError, SelectorError, UNDECODABLE: The pod can't be evaluated; then its verdict
                is unknown, too.
        """
        if not self._can_help(subject):
            return CannotScaleUp()
        shape = self._verdicts.shape_of_needs(subject)
        refused = self.pools.refusals.obstacles(shape, self.pools.about())
        filters = Filters(self._state, subject.pod, new_claims(subject))
        growths, seen = self.pools.seen(filters), CannotScaleUp()
        if growths or declared is not None:
            from gpuspawner.scaling import growing  # only hubs with such pools load it
            from gpuspawner.scaling.new_nodes import Judged

            pod = Judged(filters, subject)
            waiting = self._waiting(key, pod, growing.MOST_WAITING + 1) if key else []
            left = [growing.after(refused, growth) for growth in growths]
            found = growing.outlook(left, pod, waiting, self._verdicts)
            if isinstance(found, CanScaleUp):
                return found
            if declared is not None and not refused and growing.leaves_open(found):
                own = self.pools.declared(declared, filters)
                return growing.outlook([own], pod, waiting, self._verdicts)
            if isinstance(found, MayScaleUp):
                return found
            seen = found
        if None not in refused:
            if (others := self.pools.others(refused, filters)) is not None:
                comes = any(is_starting(it, filters) for it in self._young_nodes())
                return MayScaleUp(others, self.pools.usual.minutes(""), comes)
            if self._is_getting_ready(subject, filters) or (refused and self._joins(filters)):
                return MayScaleUp(Source.NODES, on_its_way=True)
        return CannotScaleUp(tuple(dict.fromkeys((*refused.values(), *seen.obstacles))))

    def futures(
        self, subject: Subject, declared: DeclaredPool | None, most: int
    ) -> "tuple[Future, ...]":
        """Return what each pool of `outlook` can bring for pods like this one, in so many nodes.

        Raises:
            QuantityError, SelectorError, UNDECODABLE: As `outlook`.
        """
        if not self._can_help(subject):
            return ()
        shape = self._verdicts.shape_of_needs(subject)
        refused = self.pools.refusals.obstacles(shape, self.pools.about())
        from gpuspawner.scaling.growing import after  # as in `outlook`
        from gpuspawner.scaling.new_nodes import Future, Judged

        pod = Judged.of(self._state, subject)
        seen = [Future.of(after(refused, it), pod, most) for it in self.pools.seen(pod.exact)]
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

    def _can_help(self, subject: Subject) -> bool:
        """Whether any other node could: not if all are refused, or if the pod names its own."""
        return self._verdicts.verdict(subject).rejected is None and not subject.pod.spec.node_name

    def _is_getting_ready(self, subject: Subject, filters: Filters) -> bool:
        """Whether a present node will hold the pod that is still starting, whoever has added it."""
        away = self._verdicts.verdict(subject).away
        return any(is_starting(self._state.nodes[name], filters) for name in away)

    def _joins(self, filters: Filters) -> bool:
        """Whether a present node may hold the pod once it shows its devices and their labels.

        An autoscaler that has added such a node may take it for finished, and then says that it
        adds no other one.
        """
        from gpuspawner.scaling.new_nodes import may_hold_soon  # as in `outlook`

        return any(may_hold_soon(filters, node) for node in self._young_nodes())

    def _young_nodes(self) -> list[NodeInfo]:
        """Return the nodes that may still be starting: few of thousands, and forms ask often."""
        state = self._state

        def find() -> list[str]:
            return [name for name, it in state.nodes.items() if is_young(it)]

        return [state.nodes[it] for it in self._young.of(state.nodes_version, (), find)]

    def _waiting(self, key: Key, mine: "Judged", most: int) -> list[Subject]:
        """Return other pods that wait for a node, to be created or in view: no more than *most*.

        Placeholders, say, don't count: the scheduler ends them for a pod of higher priority.

        Thousands may be pending, and each verdict takes milliseconds on a large cluster. So a pod
        costs one only if it may count, and no pod does once enough are found.
        """
        in_view = (
            it
            for it in self._in_view()
            if it.pod.metadata.key != key
            and not mine.may_preempt(it.pod)
            and self._verdicts.lacks_node(it)
        )
        created = self._reservations.waiting(besides=key)
        to_be_created = (it for it in created if not mine.may_preempt(it.pod))
        return list(islice(chain(to_be_created, in_view), most))

    def _in_view(self) -> list[Subject]:
        """Return the pending pods; forms ask often."""
        pods = self._state.unbound_pods.values()
        return self._pending.of(
            self._state.version, (), lambda: [Subject(it) for it in pods if may_be_bound(it)]
        )

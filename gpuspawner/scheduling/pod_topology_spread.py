"""Topology spread: plugin PodTopologySpread (v1.36.2), its DoNotSchedule constraints.

Each evaluation counts the matching pods of each domain once. It then derives the effect of one pod
more or less from these counts.
"""

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from gpuspawner.kube.pods import Pod, TopologySpreadConstraint

from .failures import Failure, NoTopology, Uneven
from .labels import Labels, Selector, compile_selector, with_label_keys
from .node_affinity import NodeChoice
from .node_info import NodeInfo, PodInfo
from .node_kinds import NodeKinds
from .pod_index import Meant, PodIndex, Tally
from .taint_toleration import untolerated

_NO_DOMAIN = 2**31 - 1


class Constraint(NamedTuple):
    """One constraint, compiled."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    honor_affinity: bool
    honor_taints: bool
    matches_itself: bool


def compile_constraints(pod: Pod) -> tuple[Constraint, ...]:
    """Compile the constraints that can exclude a node.

    Raises:
        SelectorError: a selector that the scheduler can't use.
    """
    labels = pod.metadata.labels or {}
    return tuple(
        _compile(constraint, labels)
        for constraint in pod.spec.topology_spread_constraints or ()
        if constraint.when_unsatisfiable == "DoNotSchedule"
    )


Domains = tuple[dict[str, str], ...]
"""For each constraint, the nodes that it counts, each with its domain."""


def domains(
    constraints: tuple[Constraint, ...],
    pod: Pod,
    choice: NodeChoice,
    kinds: NodeKinds,
) -> Domains:
    """Return the domains of the nodes; `choice` are the pod's selector and affinity."""
    tolerations = tuple(pod.spec.tolerations or ())
    keys = {constraint.topology_key for constraint in constraints}
    result: Domains = tuple({} for _ in constraints)
    reads = choice.reads
    for nodes in chain.from_iterable(kinds.alike(kind, reads) for kind in kinds):
        one = nodes[0]
        chosen = choice.matches(one.labels, one.name)
        borne = not one.taints or untolerated(one.taints, tolerations) is None
        labelled = [node for node in nodes if keys <= node.labels.keys()]
        for constraint, found in zip(constraints, result, strict=True):
            if (chosen or not constraint.honor_affinity) and (borne or not constraint.honor_taints):
                key = constraint.topology_key
                found.update((node.name, node.labels[key]) for node in labelled)
    return result


class Spread:
    """The number of matching pods in each domain of a pod's constraints, at one moment."""

    def __init__(
        self,
        constraints: tuple[Constraint, ...],
        namespace: str,
        domains: Domains,
        pods: PodIndex,
    ) -> None:
        self._constraints = constraints
        self._namespace = namespace
        self._domains = domains
        self._counts: list[dict[str, int]] = []
        for constraint, nodes in zip(constraints, domains, strict=True):
            counts = dict.fromkeys(nodes.values(), 0)
            if not constraint.selector.empty:  # an empty selector counts nothing
                meant = Meant(constraint.selector, frozenset((namespace,)))
                for name, number in pods.count(Tally((meant,), ending_too=False)).items():
                    if name in nodes:
                        counts[nodes[name]] += number
            self._counts.append(counts)
        self._least = [min(counts.values(), default=_NO_DOMAIN) for counts in self._counts]

    def failure(
        self, node: NodeInfo, added: Iterable[PodInfo] = (), removed: Iterable[PodInfo] = ()
    ) -> Failure | None:
        """Return why the rule excludes a node, with and without some pods; None if it doesn't."""
        counts, least = self._counts, self._least
        if added or removed:
            counts, least = self._changed(node, added, removed)
        for index, constraint in enumerate(self._constraints):
            domain = node.labels.get(constraint.topology_key)
            if domain is None:
                return NoTopology()
            few = len(counts[index]) < constraint.min_domains
            lowest = 0 if few else least[index]
            skew = counts[index].get(domain, 0) + constraint.matches_itself - lowest
            if skew > constraint.max_skew:
                return Uneven()
        return None

    def missing_label(self, node: NodeInfo) -> bool:
        """Return whether the node lacks a topology label, so that it never passes."""
        return any(c.topology_key not in node.labels for c in self._constraints)

    def _changed(
        self, node: NodeInfo, added: Iterable[PodInfo], removed: Iterable[PodInfo]
    ) -> tuple[list[dict[str, int]], list[int]]:
        counts = [dict(count) for count in self._counts]
        for index, nodes in enumerate(self._domains):
            domain = nodes.get(node.name)
            if domain is None:
                continue
            selector = self._constraints[index].selector
            for pods, sign in ((added, 1), (removed, -1)):
                for pod in pods:
                    if pod.namespace == self._namespace and selector.matches(pod.labels):
                        counts[index][domain] = counts[index].get(domain, 0) + sign
        return counts, [min(count.values(), default=_NO_DOMAIN) for count in counts]


def _compile(constraint: TopologySpreadConstraint, labels: Labels) -> Constraint:
    selector = compile_selector(constraint.label_selector)
    selector = with_label_keys(selector, constraint.match_label_keys, "In", labels)
    minimum = constraint.min_domains
    return Constraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=selector,
        min_domains=1 if minimum is None else minimum,
        honor_affinity=(constraint.node_affinity_policy or "Honor") == "Honor",
        honor_taints=(constraint.node_taints_policy or "Ignore") == "Honor",
        matches_itself=selector.matches(labels),
    )

"""Affinity between pods: plugin InterPodAffinity (v1.36.2).

Covers the required affinity and anti-affinity of the pod to place, and the required anti-affinity
of existing pods.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gpuspawner.kube.nodes import Namespace
from gpuspawner.kube.pods import Affinity, Pod

from .failures import Failure, NotNear, Repelled, TooNear
from .labels import NO_LABELS, NOTHING, Labels, PodTerm, required_terms
from .node_info import NodeInfo, PodInfo
from .pod_index import Meant, PodIndex, Tally
from .storage_index import StorageIndex

_Counts = dict[tuple[str, str], int]
"""The number of matching pods for each topology key and value."""


class PodChoice(NamedTuple):
    """A pod's required affinity (`near`) and anti-affinity (`away`), compiled.

    Namespace selectors are resolved to names.
    """

    near: tuple[PodTerm, ...]
    away: tuple[PodTerm, ...]
    by_namespace_label: bool
    """Whether the labels of namespaces can change the verdict."""


def pod_choice(pod: Pod, storage: StorageIndex) -> PodChoice:
    """Compile a pod's required affinity and anti-affinity.

    Raises:
        SelectorError: a selector that the scheduler can't use.
    """
    affinity = pod.spec.affinity or Affinity()
    namespace, labels = pod.metadata.namespace, pod.metadata.labels or {}
    near = required_terms(affinity.pod_affinity, namespace, labels)
    away = required_terms(affinity.pod_anti_affinity, namespace, labels)
    return PodChoice(
        near=tuple(_resolved(term, storage) for term in near),
        away=tuple(_resolved(term, storage) for term in away),
        by_namespace_label=any(term.namespace_selector.requirements for term in near + away),
    )


class Nearness:
    """Counts of the pods that matter to a pod's affinity, per topology domain, at one moment."""

    def __init__(
        self,
        pod: Pod,
        choice: PodChoice,
        namespace_labels: Labels,
        nodes: Mapping[str, NodeInfo],
        pods: PodIndex,
    ) -> None:
        """Count the pods on nodes."""
        self._namespace = pod.metadata.namespace
        self._labels: Labels = pod.metadata.labels or {}
        self._namespace_labels = namespace_labels
        self._choice = choice
        self._nodes = nodes
        self._near: _Counts = {}
        self._away: _Counts = {}
        self._repelling: _Counts = {}
        if choice.near:
            found = pods.count(Tally(tuple(map(_meant, choice.near)), ending_too=True))
            for term in choice.near:
                self._sum(self._near, term, found)
        for term in choice.away:
            found = pods.count(Tally((_meant(term),), ending_too=True))
            self._sum(self._away, term, found)
        for term, having in pods.repelling(self._namespace).items():
            if term.matches(self._namespace, self._labels, namespace_labels):
                self._sum(self._repelling, term, having)

    @property
    def needed(self) -> bool:
        """Whether the counts can exclude any node."""
        return bool(self._choice.near or self._choice.away or self._repelling)

    def failure(
        self, node: NodeInfo, added: Iterable[PodInfo] = (), removed: Iterable[PodInfo] = ()
    ) -> Failure | None:
        """Return why the rule excludes a node, with and without some pods; None if it doesn't."""
        near, away, repelling = self._near, self._away, self._repelling
        if added or removed:
            near, away, repelling = dict(near), dict(away), dict(repelling)
            for pods, sign in ((added, 1), (removed, -1)):
                for pod in pods:
                    self._count_meant(pod, sign, near, away, node)
                    self._count_repelling(pod, sign, repelling, node)
        if not self._is_near(node, near):
            return NotNear()
        labels = node.labels
        for term in self._choice.away:
            value = labels.get(term.topology_key)
            if value is not None and away.get((term.topology_key, value), 0) > 0:
                return TooNear()
        if any(labels.get(key) == value for (key, value), n in repelling.items() if n > 0):
            return Repelled()
        return None

    def missing_label(self, node: NodeInfo) -> bool:
        """Return whether the node lacks a topology label of the pod's affinity."""
        return any(term.topology_key not in node.labels for term in self._choice.near)

    def _is_near(self, node: NodeInfo, near: _Counts) -> bool:
        exist = True
        for term in self._choice.near:
            value = node.labels.get(term.topology_key)
            if value is None:
                return False
            if near.get((term.topology_key, value), 0) <= 0:
                exist = False
        if exist:
            return True
        # The first of several pods with affinity for each other may run anywhere.
        return not near and self._meant_near(self._namespace, self._labels)

    def _meant_near(self, namespace: str, labels: Labels) -> bool:
        return all(term.matches(namespace, labels, NO_LABELS) for term in self._choice.near)

    def _sum(self, counts: _Counts, term: PodTerm, found: Mapping[str, int]) -> None:
        key = term.topology_key
        for name, number in found.items():
            node = self._nodes.get(name)
            if node is not None and key in node.labels:
                domain = key, node.labels[key]
                counts[domain] = counts.get(domain, 0) + number

    def _count_meant(
        self, pod: PodInfo, sign: int, near: _Counts, away: _Counts, node: NodeInfo
    ) -> None:
        namespace, labels = pod.namespace, pod.labels
        if self._choice.near and self._meant_near(namespace, labels):
            for term in self._choice.near:
                _update(near, node, term.topology_key, sign)
        for term in self._choice.away:
            if term.matches(namespace, labels, NO_LABELS):
                _update(away, node, term.topology_key, sign)

    def _count_repelling(self, pod: PodInfo, sign: int, repelling: _Counts, node: NodeInfo) -> None:
        for term in pod.anti_affinity:
            if term.matches(self._namespace, self._labels, self._namespace_labels):
                _update(repelling, node, term.topology_key, sign)


def _meant(term: PodTerm) -> Meant:
    return Meant(term.selector, None if term.namespace_selector.empty else term.namespaces)


def _update(counts: _Counts, node: NodeInfo, key: str, sign: int) -> None:
    value = node.labels.get(key)
    if value is not None:
        number = counts.get((key, value), 0) + sign
        if number:
            counts[key, value] = number
        else:
            counts.pop((key, value), None)


def _resolved(term: PodTerm, storage: StorageIndex) -> PodTerm:
    selector = term.namespace_selector
    if not selector.requirements:  # it selects all namespaces, or none
        return term
    known = storage.all(Namespace)
    found = (n.metadata.name for n in known if selector.matches(n.metadata.labels or {}))
    return term._replace(namespaces=term.namespaces.union(found), namespace_selector=NOTHING)

"""Pods on nodes, found by name, by namespace and by whom they repel."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from .node_info import PodInfo
from .tallies import Tallies, Tally


class PodIndex(Mapping[str, PodInfo]):
    """All pods on nodes by namespace/name."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, PodInfo]] = {}
        self._size = 0
        self._repelling: dict[str, dict[str, PodInfo]] = {}
        """Pods with anti-affinity, by each namespace that their terms name."""
        self._repelling_by_selector: dict[str, PodInfo] = {}
        """Pods with anti-affinity to namespaces chosen by label."""
        self._tallies = Tallies()

    def __getitem__(self, key: str) -> PodInfo:
        return self._namespaces[key.partition("/")[0]][key]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._namespaces.values())

    def __len__(self) -> int:
        return self._size

    def add(self, pod: PodInfo) -> None:
        """Index a pod that is not indexed yet."""
        self._namespaces.setdefault(pod.namespace, {})[pod.key] = pod
        self._size += 1
        self._tallies.add(pod)
        for term in pod.anti_affinity:
            for namespace in term.namespaces:
                self._repelling.setdefault(namespace, {})[pod.key] = pod
            if not term.namespace_selector.nothing:
                self._repelling_by_selector[pod.key] = pod

    def discard(self, key: str) -> PodInfo | None:
        """Drop a pod and return it, if it is indexed."""
        namespace = key.partition("/")[0]
        pods = self._namespaces.get(namespace)
        pod = pods.pop(key, None) if pods is not None else None
        if pods is None or pod is None:
            return None
        self._size -= 1
        self._tallies.discard(pod)
        if not pods:
            del self._namespaces[namespace]
        for term in pod.anti_affinity:
            for name in term.namespaces:
                repelling = self._repelling.get(name, {})
                repelling.pop(key, None)
                if not repelling:
                    self._repelling.pop(name, None)
            self._repelling_by_selector.pop(key, None)
        return pod

    def in_namespaces(self, names: Iterable[str] | None) -> Iterable[PodInfo]:
        """Return the pods of some namespaces; None means all."""
        if names is None:
            return chain.from_iterable(pods.values() for pods in self._namespaces.values())
        return chain.from_iterable(self._namespaces.get(name, {}).values() for name in names)

    def count(self, tally: Tally) -> Mapping[str, int]:
        """Return how many of the pods count on each node."""
        return self._tallies.count(tally, self.in_namespaces(tally.meant[0].namespaces))

    def repelling(self, namespace: str) -> Iterable[PodInfo]:
        """Return the pods that may repel pods of a namespace, each once."""
        named = self._repelling.get(namespace, {})
        if not self._repelling_by_selector:
            return named.values()
        return {**self._repelling_by_selector, **named}.values()

    @property
    def repels_by_namespace_label(self) -> bool:
        """Whether labels of namespaces decide whom some pod repels."""
        return any(
            not term.namespace_selector.empty and not term.namespace_selector.nothing
            for pod in self._repelling_by_selector.values()
            for term in pod.anti_affinity
        )

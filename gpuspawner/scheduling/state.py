"""The known state of the cluster, built from plain objects or kept up to date by a live view.

One writer and many readers share one thread. `put` and `remove` look at no more than the pods of
one node. Nothing here raises because of the content of an object.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from types import MappingProxyType

import msgspec

from gpuspawner.kube.meta import Key
from gpuspawner.kube.nodes import Node
from gpuspawner.kube.objects import (
    CLUSTER_SCOPED,
    KINDS,
    KubeObject,
    Manifest,
    Undecodable,
    convert,
)
from gpuspawner.kube.pods import Pod

from .node_index import NodeIndex
from .node_info import NodeInfo, Nominated, PodInfo, pod_info, pod_key
from .pod_index import PodIndex
from .rules import DEFAULT_RULES, Rules
from .static_filters import Screening
from .storage_index import StorageIndex, drop_from, object_key

ENDED = ("Succeeded", "Failed")
"""Phases of pods that no longer hold resources. Terminating pods still hold them."""


class UndecodableObjects:
    """Objects that can't be decoded, pods also by node; verdicts that depend on one are unknown."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str], Undecodable] = {}
        self._pods: dict[str | None, dict[str, Undecodable]] = {}

    def __iter__(self) -> Iterator[Undecodable]:
        return iter(self._all.values())

    def __bool__(self) -> bool:
        return bool(self._all)

    def pods_on(self, node: str) -> Iterable[Undecodable]:
        """Return the pods on a node."""
        return self._pods.get(node, {}).values()

    def keys(self, kind: str) -> Iterator[str]:
        """Yield the keys that a kind has now; objects of any kind may change meanwhile."""
        return iter([key for other_kind, key in self._all if other_kind == kind])

    def put(self, thing: Undecodable) -> None:
        """Store the newest version of an object."""
        key = object_key(thing.kind, thing.namespace, thing.name)
        other = None if thing.name else self._all.get((thing.kind, key))
        if other is not None and other.node != thing.node:
            # Pods without a name share a key, so one entry now concerns several nodes.
            thing = msgspec.structs.replace(thing, node=None)
        self.discard(thing.kind, key)
        self._all[thing.kind, key] = thing
        if thing.kind == "Pod":
            self._pods.setdefault(thing.node, {})[key] = thing

    def discard(self, kind: str, key: str) -> bool:
        """Drop an object; return whether there was one."""
        gone = self._all.pop((kind, key), None)
        if gone is not None and kind == "Pod":
            drop_from(self._pods, gone.node, key)
        return gone is not None


class ClusterState:
    """The cluster at one moment.

    A kind is known once its objects were given or it was marked as known, even if it has none.
    Verdicts that depend on an unknown kind are unknown.
    """

    def __init__(self, rules: Rules = DEFAULT_RULES) -> None:
        self.rules = rules
        self.version = 0
        """Increases with every change that can affect a verdict."""
        self.nodes_version = 0
        """Increases with those of them that are changes of nodes."""
        self._passing = 0
        """How many of these changes were those of pods that will end."""
        self.pods = PodIndex()
        """All pods that have a node and haven't ended, by namespace/name."""
        self.storage = StorageIndex()
        self._known: set[str] = set()
        self._places = NodeIndex()
        self.nodes: Mapping[str, NodeInfo] = MappingProxyType(self._places.nodes)
        """All nodes by name."""
        self.kinds = self._places.kinds
        """All nodes, grouped."""
        self.spare = self._places.spare
        """Which nodes have devices left."""
        self.images = self._places.images
        """What the nodes have of images; has a version of its own."""
        self._unbound: dict[str, Pod] = {}
        self.unbound_pods: Mapping[str, Pod] = MappingProxyType(self._unbound)
        """All pods without a node that haven't ended, by namespace/name."""
        self.undecodable = UndecodableObjects()
        """All undecodable objects."""
        self.screening = Screening()
        """Results that are kept between evaluations."""
        self._nominated: dict[str, dict[str, Nominated]] = {}

    @classmethod
    def from_objects(
        cls,
        *,
        nodes: Iterable[Manifest] | None = None,
        pods: Iterable[Manifest] | None = None,
        namespaces: Iterable[Manifest] | None = None,
        persistentVolumeClaims: Iterable[Manifest] | None = None,  # noqa: N803 (named as in the API)
        persistentVolumes: Iterable[Manifest] | None = None,  # noqa: N803
        storageClasses: Iterable[Manifest] | None = None,  # noqa: N803
        csiNodes: Iterable[Manifest] | None = None,  # noqa: N803
        csiDrivers: Iterable[Manifest] | None = None,  # noqa: N803
        csiStorageCapacities: Iterable[Manifest] | None = None,  # noqa: N803
        volumeAttachments: Iterable[Manifest] | None = None,  # noqa: N803
        deviceClasses: Iterable[Manifest] | None = None,  # noqa: N803
        priorityClasses: Iterable[Manifest] | None = None,  # noqa: N803
        rules: Rules = DEFAULT_RULES,
    ) -> "ClusterState":
        """Build a state from plain API dicts, such as the `items` of `kubectl get -o json`.

        None means that the kind is unknown, an empty list that it has no objects. Never raises: an
        undecodable object makes only those verdicts unknown that depend on it.
        """
        state = cls(rules)
        given = (
            nodes, pods, namespaces, persistentVolumeClaims, persistentVolumes, storageClasses,
            csiNodes, csiDrivers, csiStorageCapacities, volumeAttachments, deviceClasses,
            priorityClasses,
        )  # fmt: skip
        for kind, objects in zip(KINDS, given, strict=True):
            if objects is not None:
                state.mark_known(kind)
                for plain in objects:
                    state.put(convert(kind, plain))
        return state

    def copies(self) -> Iterator["ClusterState"]:
        """Copy this state as it is now, object by object, to try changes on; the last one is whole.

        This state may change meanwhile. A copy knows no images of nodes.
        """
        made = ClusterState(self.rules)
        made._known = set(self._known)
        made._places.expect(self._places.startup_taints)
        others = (
            it for kind in KINDS if kind not in ("Node", "Pod") for it in self.all(kind).values()
        )
        nodes = (it.node for it in self.nodes.values() if it.node is not None)
        things = [*nodes, *others, *self._unbound.values(), *self.undecodable]
        bound = [*self.pods.items()]
        yield made
        for thing in things:
            made.put(thing)
            yield made
        for key, pod in bound:
            made._put_bound(key, pod)
            yield made

    @property
    def lasting_version(self) -> int:
        """Increases with every change that can affect where a pod could run if others ended."""
        return self.version - self._passing

    # --- what is known

    def known(self, kind: str) -> bool:
        """Return whether all objects of a kind are known."""
        return kind in self._known

    def nominated(self, node: str) -> Collection[Nominated]:
        """Return the pods without a node that are nominated to this one."""
        return self._nominated.get(node, {}).values()

    @property
    def has_nominations(self) -> bool:
        """Whether any pod is nominated to a node."""
        return bool(self._nominated)

    def all(self, kind: str) -> Mapping[str, KubeObject]:
        """Return all objects of a kind other than Node and Pod, by name or namespace/name."""
        return self.storage.of_kind(kind)

    def keys(self, kind: str) -> Iterator[Key]:
        """Yield (namespace, name) of all objects of a kind, which must not change meanwhile."""
        for key in chain(self.undecodable.keys(kind), self._decoded(kind)):
            yield _split(kind, key)

    def _decoded(self, kind: str) -> Iterable[str]:
        if kind == "Node":
            return self._places.nodes
        if kind == "Pod":
            return chain(self.pods, self._unbound)
        return self.storage.of_kind(kind)

    # --- changes

    def mark_known(self, kind: str) -> None:
        """Record that all objects of a kind have been put."""
        self._known.add(kind)
        self.version += 1

    def mark_unknown(self, kind: str) -> None:
        """Record that objects of a kind may be missing or outdated."""
        self._known.discard(kind)
        self.version += 1

    def judge_by(self, rules: Rules) -> None:
        """Judge by other rules from now on; what pods hold by them is known once they are put."""
        self.rules = rules
        self.version += 1

    def put(self, thing: KubeObject | Undecodable) -> None:
        """Store the newest version of an object."""
        if isinstance(thing, Pod):
            self._put_pod(thing)
        elif isinstance(thing, Node):
            self._drop_undecodable("Node", thing.metadata.name)
            if self._places.put(thing):
                self._node_changed()
        elif isinstance(thing, Undecodable):
            self._drop_decoded(thing.kind, thing.namespace, thing.name)
            self.undecodable.put(thing)
            self.version += 1
        else:
            kind = type(thing).__name__
            key = object_key(kind, thing.metadata.namespace, thing.metadata.name)
            self._drop_undecodable(kind, key)
            self.storage.put(kind, thing)
            self.version += 1

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """Drop an object, if it exists."""
        self._drop_undecodable(kind, object_key(kind, namespace, name))
        self._drop_decoded(kind, namespace, name)

    def _drop_decoded(self, kind: str, namespace: str, name: str) -> None:
        key = object_key(kind, namespace, name)
        if kind == "Pod":
            self._drop_pod(key)
        elif kind == "Node":
            if self._places.drop(name):
                self._node_changed()
        elif self.storage.discard(kind, key):
            self.version += 1

    def _drop_undecodable(self, kind: str, key: str) -> None:
        if self.undecodable.discard(kind, key):
            self.version += 1

    def expect(self, startup_taints: frozenset[str]) -> None:
        """Take taints with these keys for temporary: an autoscaler says so of its own nodes."""
        if startup_taints != self._places.startup_taints:
            self._places.expect(startup_taints)
            self._node_changed()

    def _put_pod(self, pod: Pod) -> None:
        key = pod_key(pod.metadata.namespace, pod.metadata.name)
        self._drop_undecodable("Pod", key)
        if pod.status.phase in ENDED:
            self._drop_pod(key)
        elif pod.spec.node_name:
            self._put_bound(key, pod_info(pod, self.rules))
        else:
            self._put_unbound(key, pod)

    def _put_bound(self, key: str, info: PodInfo) -> None:
        # Most changes of a running pod don't matter: a probe, a restart, an annotation.
        if self.pods.find(key) == info:
            return
        self._drop_pod(key)
        self._count_change(info)
        self.pods.add(info)
        self._places.add(info)

    def _put_unbound(self, key: str, pod: Pod) -> None:
        self._drop_pod(key)
        self._count_change(None)
        self._unbound[key] = pod
        node = pod.status.nominated_node_name
        if node:
            there = Nominated(pod_info(pod, self.rules, node), pod.spec.scheduler_name)
            self._nominated.setdefault(node, {})[key] = there

    def _drop_pod(self, key: str) -> None:
        unbound = self._unbound.pop(key, None)
        if unbound is not None:
            self._count_change(None)
            drop_from(self._nominated, unbound.status.nominated_node_name, key)
        info = self.pods.discard(key)
        if info is not None:
            self._count_change(info)
            self._places.discard(info)

    def _count_change(self, pod: PodInfo | None) -> None:
        """Count the change of a pod; None if it has no node."""
        self.version += 1
        if pod is None or not pod.staying:
            self._passing += 1

    def _node_changed(self) -> None:
        self.version += 1
        self.nodes_version += 1
        self.screening.node_changed()


def _split(kind: str, key: str) -> Key:
    if kind in CLUSTER_SCOPED:
        return "", key
    namespace, _, name = key.partition("/")
    return namespace, name

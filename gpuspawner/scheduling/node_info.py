"""A node and its pods, with sums that each pod changes."""

import itertools
import sys
from collections.abc import Collection, Container, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from gpuspawner.kube.nodes import Node, Taint
from gpuspawner.kube.pods import Pod, Volume
from gpuspawner.kube.quantity import QuantityError

from .labels import PodTerm, SelectorError, required_terms
from .node_ports import HostPort, host_ports
from .requests import PODS, Amounts, allocatable, held
from .rules import Rules
from .temporary_taints import is_temporary

_GENERATIONS = itertools.count(1)

_MOST_SHARED = 32
"""The largest anti-affinity that is shared, in texts: what is shared outlives its pods."""

GRACE_SECONDS = 30
"""The API server's default of a pod's ``terminationGracePeriodSeconds``."""


class PodInfo(msgspec.Struct, gc=False, frozen=True):
    """The fields of a pod on a node that decide. There may be 150,000 of these objects."""

    key: str
    """namespace/name"""
    node: str
    labels: dict[str, str]
    priority: int
    requested: Amounts
    """The resources that it holds on its node; empty if `problem` is set."""
    terminating: bool = False
    staying: bool = False
    """Whether it never ends by itself: owned by a DaemonSet, or static (a mirror pod)."""
    ports: tuple[HostPort, ...] = ()
    claims: tuple[str, ...] = ()
    """Names of its PersistentVolumeClaims, in its own namespace."""
    volumes: tuple[Volume, ...] = ()
    """Its other volumes that decide: ephemeral, inline CSI and in-tree volumes."""
    anti_affinity: tuple[PodTerm, ...] = ()
    preempted: bool = False
    """Whether a scheduler preempted it, to make room for another pod."""
    problem: str = ""
    """Why it is unknown how much it holds."""
    grace: int = GRACE_SECONDS
    """Seconds that it may take to end."""

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.partition("/")[2]


class Nominated(NamedTuple):
    """A pod without a node, for which a scheduler keeps room on its nominated node."""

    pod: PodInfo
    """The pod as if it ran on that node."""
    scheduler: str


def pod_key(namespace: str, name: str) -> str:
    """Return the key of a pod or a claim."""
    return f"{namespace}/{name}"


def pod_info(pod: Pod, rules: Rules, node: str = "") -> PodInfo:
    """Extract the fields of a pod that decide. Never raises."""
    meta, spec = pod.metadata, pod.spec
    problem = ""
    try:
        requested = held(pod, rules)
    except QuantityError as error:
        requested, problem = {}, str(error)
    volumes, grace = spec.volumes or (), spec.termination_grace_period_seconds
    return PodInfo(
        key=pod_key(meta.namespace, meta.name),
        node=sys.intern(node or spec.node_name),
        labels={sys.intern(key): sys.intern(it) for key, it in (meta.labels or {}).items()},
        priority=spec.priority or 0,
        requested=requested,
        terminating=meta.deletion_timestamp is not None,
        staying=is_staying(pod),
        ports=host_ports(pod, rules),
        claims=tuple(
            v.persistent_volume_claim.claim_name for v in volumes if v.persistent_volume_claim
        ),
        volumes=tuple(v for v in volumes if _decides(v)),
        anti_affinity=_anti_affinity(pod),
        preempted=_preempted(pod),
        problem=problem,
        grace=GRACE_SECONDS if grace is None else grace,
    )


def is_staying(pod: Pod) -> bool:
    """Return whether a pod never ends by itself: owned by a DaemonSet, or static (mirror pod)."""
    annotations = pod.metadata.annotations
    if annotations is not None and annotations.mirror is not None:
        return True
    return any(
        owner.kind in ("DaemonSet", "Node") and owner.controller is not False
        for owner in pod.metadata.owner_references or ()
    )


class Leaving(NamedTuple):
    """Pods of a node that may make way, and what is free there without them."""

    pods: tuple[PodInfo, ...]
    free: Amounts


class NodeInfo(msgspec.Struct, gc=False, eq=False):
    """A node, its resources, and its pods. None of these refers to it, so there are no cycles."""

    name: str
    node: Node | None = None
    generation: int = 0
    """Increases with every change of the free resources; unique across all nodes."""
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    """Taints that keep pods away: NoSchedule and NoExecute."""
    lasting_taints: tuple[Taint, ...] = ()
    """Those of them that don't go by themselves."""
    allocatable: Amounts = {}
    capacity: Amounts = {}
    requested: dict[str, int] = {}
    free: dict[str, int] = {}
    """allocatable - requested; negative if the node is over-committed."""
    problem: str = ""
    pods: dict[str, PodInfo] = {}
    staying: int = 0
    """The number of pods that never end by themselves."""
    staying_requested: dict[str, int] = {}
    lowest: int | None = None
    """The lowest priority of a pod."""
    ported: dict[str, PodInfo] = {}
    claimants: dict[str, PodInfo] = {}
    """Pods with claims or other volumes that decide."""
    claims: int = 0
    """The number of volumes that they have at most."""
    unreadable: dict[str, str] = {}
    """Pods whose requests are unknown, each with the reason."""
    lower: dict[int, Leaving] = {}
    """By priority, what somebody has asked since the last change: the pods of a lower one."""

    def set_node(self, node: Node, startup_taints: Container[str] = ()) -> bool:
        """Store the node's newest version; return whether a field that decides has changed.

        *startup_taints* are as in `expect`.
        """
        known = self.node
        self.node = node
        if known is not None and _deciding(known) == _deciding(node):
            return False
        self._note_change()
        self.labels = node.metadata.labels or {}
        self.taints = tuple(
            taint for taint in node.spec.taints or () if taint.effect in ("NoSchedule", "NoExecute")
        )
        self.expect(startup_taints)
        try:
            self.allocatable = allocatable(node.status.allocatable)
            self.capacity = allocatable(node.status.capacity)
            self.problem = ""
        except QuantityError as error:
            self.allocatable, self.capacity, self.problem = {}, {}, str(error)
        self.free = dict(self.allocatable)
        _add(self.free, self.requested, -1)
        self.free[PODS] = self.allocatable.get(PODS, 0) - len(self.pods)
        return True

    def expect(self, startup_taints: Container[str]) -> None:
        """Take taints with these keys for temporary, beside those that are known to be so."""
        self.lasting_taints = tuple(
            it for it in self.taints if not (it.key in startup_taints or is_temporary(it.key))
        )

    @property
    def doubtful(self) -> bool:
        """Whether the node's resources or the requests of its pods are unknown."""
        return bool(self.problem or self.unreadable)

    def has_below(self, priority: int) -> bool:
        """Return whether it has a pod of a lower priority."""
        return self.lowest is not None and self.lowest < priority

    def below(self, priority: int) -> Leaving:
        """Return its pods of a lower priority; summed up once until something changes.

        Hundreds of starts ask in a row, each about all nodes.
        """
        if priority not in self.lower:
            pods = tuple(pod for pod in self.pods.values() if pod.priority < priority)
            self.lower[priority] = Leaving(pods, free_after(self.free, pods, 1))
        return self.lower[priority]

    def add(self, pod: PodInfo) -> None:
        """Count a pod that isn't counted yet."""
        key = pod.key
        self.pods[key] = pod
        if self.lowest is None or pod.priority < self.lowest:
            self.lowest = pod.priority
        self._count(pod, 1)
        if pod.ports:
            self.ported[key] = pod
        if pod.claims or pod.volumes:
            self.claimants[key] = pod
        if pod.problem:
            self.unreadable[key] = pod.problem

    def discard(self, key: str) -> None:
        """Stop counting a pod, if it is counted."""
        pod = self.pods.pop(key, None)
        if pod is None:
            return
        if pod.priority == self.lowest:
            self.lowest = min((it.priority for it in self.pods.values()), default=None)
        self._count(pod, -1)
        for index in (self.ported, self.claimants, self.unreadable):
            index.pop(key, None)

    def _count(self, pod: PodInfo, sign: int) -> None:
        _add(self.requested, pod.requested, sign)
        _add(self.free, pod.requested, -sign)
        self.free[PODS] = self.free.get(PODS, 0) - sign
        self.claims += sign * (len(pod.claims) + len(pod.volumes))
        self._note_change()
        if pod.staying:
            self.staying += sign
            _add(self.staying_requested, pod.requested, sign)

    def _note_change(self) -> None:
        self.generation = next(_GENERATIONS)
        self.lower.clear()


def free_after(free: Amounts, pods: tuple[PodInfo, ...], sign: int) -> Amounts:
    """Return what is free with pods more (-1), or without pods (1)."""
    changed = dict(free)
    for pod in pods:
        changed[PODS] = changed.get(PODS, 0) + sign
        _add(changed, pod.requested, sign)
    return changed


def pods_after(
    index: Mapping[str, PodInfo], added: Iterable[PodInfo], gone: Collection[PodInfo]
) -> list[PodInfo]:
    """Return the pods of a node by an index, with pods that were added, and without some."""
    keys = {pod.key for pod in gone} if gone else ()
    return [*(pod for key, pod in index.items() if key not in keys), *added]


def _add(sums: dict[str, int], amounts: Amounts, sign: int) -> None:
    for resource, amount in amounts.items():
        sums[resource] = sums.get(resource, 0) + sign * amount


def _decides(volume: Volume) -> bool:
    return bool(
        volume.ephemeral
        or volume.csi
        or volume.gce_persistent_disk
        or volume.aws_elastic_block_store
        or volume.azure_disk
        or volume.cinder
        or volume.iscsi
        or volume.rbd
    )


def _anti_affinity(pod: Pod) -> tuple[PodTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    try:
        terms = required_terms(affinity.pod_anti_affinity, pod.metadata.namespace)
    except SelectorError:
        return ()  # if one term is invalid, the scheduler drops all terms of the pod
    return _shared(terms) if sum(map(_size, terms)) <= _MOST_SHARED else terms


@lru_cache(maxsize=1024)
def _shared(terms: tuple[PodTerm, ...]) -> tuple[PodTerm, ...]:
    """Return equal terms that were given before: a Deployment's pods all have the same ones."""
    return terms


def _size(term: PodTerm) -> int:
    """Return roughly how many texts a term keeps."""
    selectors = (*term.selector.requirements, *term.namespace_selector.requirements)
    return 1 + len(term.namespaces) + sum(1 + len(it.values) for it in selectors)


def _preempted(pod: Pod) -> bool:
    return any(
        condition.type == "DisruptionTarget"
        and condition.status == "True"
        and condition.reason == "PreemptionByScheduler"
        for condition in pod.status.conditions or ()
    )


def _deciding(node: Node) -> tuple[object, ...]:
    """Return what decides; annotations tell by their keys who manages a node, and change often."""
    annotations = node.metadata.annotations or {}
    return node.spec, node.status, node.metadata.labels, annotations.keys()

"""Cluster Autoscaler's node groups: what they may still add, by its status.

The status tells sizes, but no labels: which nodes belong to a group is read from the names that
clouds give to groups and nodes.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from gpuspawner.cluster.autoscaler_objects import AutoscalerObjects
from gpuspawner.kube.caches import Recent, UntilChanged
from gpuspawner.kube.nodes import Node
from gpuspawner.offers.vendors import INSTANCE_TYPE
from gpuspawner.scaling.cloud_errors import why_failed
from gpuspawner.scaling.cluster_autoscaler_status import (
    NodeGroup,
    is_after_a_look,
    is_old,
    node_groups,
    written,
)
from gpuspawner.scaling.node_pool import (
    Growth,
    Machine,
    arriving,
    devices,
    kind,
    like,
    machine_type,
)
from gpuspawner.scaling.outlook import Obstacle, Source, WhyNoNode
from gpuspawner.scaling.starting_nodes import has_lost_devices, is_leaving, is_starting, is_young
from gpuspawner.scaling.unseen_autoscalers import POOL_LABELS
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.node_info import NodeInfo
from gpuspawner.scheduling.state import ClusterState

# Pods may select pools that don't exist.
_MOST_POOLS = 1024

# More than the pods that are counted beside each other. A status may claim millions.
_MOST_JOINING = 300


class _Members(msgspec.Struct):
    """The nodes of one group.

    Attributes:
        count: Without those that the autoscaler is deleting, as its status counts them.
        settled: One node of each kind, of those that aren't young.
        young: Nodes that may still be starting.
    """

    count: int = 0
    settled: dict[object, NodeInfo] = msgspec.field(default_factory=dict)
    young: list[NodeInfo] = msgspec.field(default_factory=list)


class NodeGroups:
    """The node groups, and the kinds of nodes that each has shown last."""

    def __init__(self, state: ClusterState, objects: AutoscalerObjects) -> None:
        self._state = state
        self._objects = objects
        self._seen: dict[str, tuple[NodeInfo, ...]] = {}
        self._read: tuple[str | None, tuple[NodeGroup, ...] | None] = (None, None)
        self._written: datetime | None = None
        self._looks = 0
        self._counted: str | None = None
        self._sorted = UntilChanged[defaultdict[str, _Members]]()
        self._known: dict[str, _Known] = {}
        self._names = _GroupNames(())

    @property
    def groups(self) -> tuple[NodeGroup, ...] | None:
        """The node groups now; None if there is no status, or it can't be read or is old."""
        return None if self.is_old else self._groups()

    @property
    def looks(self) -> int | None:
        """How often it has written its status after a look, since the hub runs; None as `groups`.

        The first one may be older than that.
        """
        return None if self.groups is None else self._looks

    @property
    def is_old(self) -> bool:
        """Whether the status is so old that the autoscaler doesn't run any more."""
        self._groups()
        return self._written is not None and is_old(self._written)

    def growths(self, filters: Filters) -> list[Growth]:
        """Return how each node group can grow for the pod of *filters*."""
        groups = self.groups
        if not groups:
            return []
        members = self._sorted.of((self._state.version, groups), (), lambda: self._sort(groups))
        strangers = sum(is_starting(it, filters) for it in members[_STRANGERS].young)
        return [self._growth(group, members[group.name], filters, strangers) for group in groups]

    def _growth(self, group: NodeGroup, its: _Members, filters: Filters, strangers: int) -> Growth:
        """Return how one group can grow; *strangers* are starting nodes of groups not known."""
        starting = [node for node in its.young if is_starting(node, filters)]
        joined = {kind(node): node for node in its.young if node not in starting}
        if kinds := {**its.settled, **joined}:
            self._see(group.name, [like(node) for node in kinds.values()])
        health, counts = group.health, group.health.node_counts
        # While a group is unhealthy, nobody knows when the autoscaler will use it again.
        is_healthy = health.status != "Unhealthy"
        seen = self._seen.get(group.name, ()) if is_healthy else ()
        models = tuple(it for it in seen if not has_lost_devices(it, filters))
        target = health.cloud_provider_target
        left = max(0, health.max_size - target)
        there = max(counts.registered.total - counts.registered.being_deleted, its.count)
        missing = target - counts.long_unregistered - there
        joining = min(max(0, missing), _MOST_JOINING)
        coming = [arriving(node, _model(node, models)) for node in starting] if models else []
        return Growth(
            source=Source.CLUSTER_AUTOSCALER,
            pool=group.name,
            nodes=target,
            max_nodes=health.max_size,
            machines=tuple(Machine(model, left) for model in models),
            is_complete=bool(models) and len(models) == len(seen),
            is_listed=is_healthy,
            coming=(*coming, *models[:1] * joining),
            requested=0 if models else len(starting) + joining + (0 if its.count else strangers),
            requirements=None if models else _OfPool(self._names, group.name),
            obstacle=_obstacle(group, left),
        )

    def _see(self, group: str, shown: Sequence[NodeInfo]) -> None:
        """Keep what a group's nodes show; without its devices, a node says nothing of its kind."""
        known = {
            machine_type(it): it
            for it in (*self._seen.get(group, ()), *shown)
            if devices(it.allocatable)
        }
        models: Iterable[NodeInfo] = (
            it if devices(it.allocatable) else known.get(machine_type(it), it) for it in shown
        )
        self._seen[group] = tuple({id(it): it for it in models}.values())

    def _groups(self) -> tuple[NodeGroup, ...] | None:
        status = self._objects.autoscaler_status
        if self._read[0] != status:
            self._read = status, None if status is None else node_groups(status)
            self._written = None if status is None else written(status)
            # A lost watch reads the same one again.
            if status is not None and status != self._counted and is_after_a_look(status):
                self._looks += 1
                self._counted = status
        return self._read[1]

    def _sort(self, groups: Sequence[NodeGroup]) -> defaultdict[str, _Members]:
        """Return the nodes of each group, and those that belong to none or to one of several."""
        names = tuple(it.name for it in groups)
        if names != self._names.all:
            self._names, self._known = _GroupNames(names), {}
            # A group that comes back may have other machines.
            self._seen = {name: self._seen[name] for name in names if name in self._seen}
        known, self._known = self._known, {}
        members: defaultdict[str, _Members] = defaultdict(_Members)
        for node in self._state.nodes.values():
            its = known.get(node.name)
            if its is None or its.node is not node.node:
                its = _Known(node.node, self._names.group_of(node) or _STRANGERS, kind(node))
            self._known[node.name] = its
            of_group = members[its.group]
            of_group.count += not is_leaving(node)
            if is_young(node):
                of_group.young.append(node)
            else:
                of_group.settled[its.kind] = node
        return members


def _model(node: NodeInfo, models: Sequence[NodeInfo]) -> NodeInfo:
    """Return a model of the same type as a starting node, if there is one."""
    its_type = node.labels.get(INSTANCE_TYPE)
    return next((it for it in models if it.labels.get(INSTANCE_TYPE) == its_type), models[0])


_STRANGERS = ""
"""In place of a group's name, for the nodes of none."""


class _Known(NamedTuple):
    """What was read of a node, until it changes."""

    node: Node | None
    group: str
    kind: object


class _GroupNames:
    """Finds the group of a node by the names of all groups."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.all = names
        self._bases = {name: _base(name) for name in names}
        # Thousands of nodes may belong to no group, and comparing all in one call is fast.
        self._starts = tuple(self._bases.values())
        self._by_pool = Recent[str, list[str]](_MOST_POOLS)

    def group_of(self, node: NodeInfo) -> str | None:
        """Return the group of the node; None if it is in none, or in one of several."""
        pool = next((node.labels[it] for it in POOL_LABELS if node.labels.get(it)), "")
        found = self.of_pool(pool)
        # On GKE and Gardener, the cluster's name stands before the pool's, and both may have
        # hyphens: this may be the pool "gpu" of "c-big", or "big-gpu" of "c". Only the names of its
        # nodes tell.
        if len(found) != 1 or self._bases[found[0]].startswith((*_GKE, _GARDENER)):
            near = found or (self._bases if node.name.startswith(self._starts) else ())
            found = [it for it in near if _begins(node.name, self._bases[it])]
        return found[0] if len(found) == 1 else None

    def of_pool(self, pool: str) -> list[str]:
        """Return the groups that seem to be named after a pool; see `group_of`."""
        if pool not in self._by_pool:
            called = _called_after(pool)
            found = [name for name, base in self._bases.items() if called.fullmatch(base)]
            self._by_pool[pool] = found if pool else []
        return self._by_pool[pool]


class _OfPool(msgspec.Struct, frozen=True):
    """What the name of a group tells, if nobody has seen its nodes."""

    names: _GroupNames
    group: str

    def allow(self, filters: Filters) -> bool:
        """Whether the pod selects no pool after which only other groups are named."""
        selected = [filters.choice.labels[it] for it in POOL_LABELS if it in filters.choice.labels]
        named = [found for pool in selected if (found := self.names.of_pool(pool))]
        return all(self.group in found for found in named)


_GKE = ("gke-", "gk3-")  # the second is Autopilot's
_GARDENER = "shoot--"
_HASH = "[0-9a-f]{8}"
_AFTER_GROUP = re.compile(r"-?[0-9a-z]+")
_AFTER_MACHINES = re.compile(r"(?:-[0-9a-z]+){2}")  # the ids of Gardener's MachineSet and machine


def _called_after(pool: str) -> re.Pattern[str]:
    """Return how GKE, Gardener, AKS, EKS, eksctl, Magnum and others name the group of a pool.

    Nothing else may stand around the pool's name: it may end that of another pool, as ``gpu`` ends
    ``big-gpu``. Sources: the clouds' documentation, ``magnum_manager_impl.go`` of Cluster
    Autoscaler, and Gardener's extensions, such as ``pkg/controller/worker/machines.go`` for Azure,
    where only a zone stands after the pool's name. AKS Engine writes ``k8s`` for ``aks``.
    """
    name = re.escape(pool)
    return re.compile(
        rf"(?:{'|'.join(_GKE)}).+-{name}-{_HASH}"
        rf"|{_GARDENER}.+-{name}(?:-z\d+)?"
        rf"|(?:aks|k8s)-{name}-\d+-vmss"
        rf"|eks-{name}-{_HASH}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}"
        rf"|eksctl-(?:(?!-nodegroup-).)+-nodegroup-{name}-NodeGroup-\w+"
        rf"|{name}(?:-{_HASH})?"
    )


def _begins(node: str, base: str) -> bool:
    """Whether a node's name is the group's and an id, as on GKE and AKS; on Gardener, two ids."""
    after = _AFTER_MACHINES if base.startswith(_GARDENER) else _AFTER_GROUP
    return node.startswith(base) and after.fullmatch(node, len(base)) is not None


def _base(group: str) -> str:
    """Return the last part of a group's name, without GKE's suffix."""
    return group.rpartition("/")[2].removesuffix("-grp")


def _obstacle(group: NodeGroup, left: int) -> Obstacle | None:
    if group.scale_up.status == "Backoff":
        info = group.scale_up.backoff_info
        problem = ": ".join(filter(None, (info.error_code, info.error_message)))
        return Obstacle(why_failed(info.error_code, info.error_message), group.name, problem)
    if left == 0:
        return Obstacle(WhyNoNode.AT_MAXIMUM, group.name, nodes=group.health.max_size)
    return None

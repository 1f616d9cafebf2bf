"""All pools that may grow, from all sources, and what autoscalers have refused."""

import json
import math
import time
from collections.abc import Container, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from gpuspawner.cluster.autoscaler_objects import AutoscalerObjects
from gpuspawner.kube.autoscaling import NodeClaim
from gpuspawner.kube.caches import Recent, UntilChanged
from gpuspawner.kube.objects import Undecodable
from gpuspawner.offers.shapes import Frozen, thaw
from gpuspawner.offers.types import Accelerator, ScaleUp
from gpuspawner.scaling.outlook import Obstacle, Source
from gpuspawner.scaling.unseen_autoscalers import POOL_LABELS, SIGNS, Sign, signs
from gpuspawner.scaling.usual_times import UsualTimes
from gpuspawner.scheduling.filters import Filters
from gpuspawner.scheduling.state import ClusterState

if TYPE_CHECKING:
    from gpuspawner.scaling.cluster_autoscaler import NodeGroups
    from gpuspawner.scaling.cluster_autoscaler_status import NodeGroup
    from gpuspawner.scaling.karpenter import Karpenter
    from gpuspawner.scaling.node_pool import Growth

DETECT, NONE, ALWAYS = "detect", "none", "always"
"""The values of ``GPUSpawner.autoscaling``."""


class DeclaredPool(msgspec.Struct, frozen=True):
    """The pool of a ``scale_up``: the nodes that these labels and terms select.

    Attributes:
        resource: The accelerator's resource, of which the administrator is trusted to offer no
            more than a node has; "" for a pool without accelerators.
    """

    scale_up: ScaleUp
    node_selector: Mapping[str, str] = msgspec.field(default_factory=dict)
    node_affinity: tuple[Frozen, ...] = ()
    resource: str = ""

    @property
    def name(self) -> str:
        """What it selects, for administrators."""
        labels = [f"{key}={value}" for key, value in sorted(self.node_selector.items())]
        terms = [json.dumps(thaw(self.node_affinity))] if self.node_affinity else []
        return ",".join(labels + terms)

    @classmethod
    def of(cls, accelerator: Accelerator | None) -> "DeclaredPool | None":
        """Return the pool of an accelerator; None if none is declared."""
        if accelerator is None or accelerator.scale_up is None:
            return None
        return cls(
            accelerator.scale_up,
            accelerator.node_selector,
            accelerator.node_affinity,
            accelerator.resource,
        )


REMEMBERED_SECONDS = 600.0

# Karpenter tells of ten nominations at once and then of five a second, and takes those that it
# leaves out for told: it tells them after two minutes, in a round that needs some seconds
# (`PodNominationRateLimiter` in ``events.go``, `publishEvent` in ``recorder.go``, v1.14.1).
_UNTOLD_SECONDS = 150.0
_MOST_SHAPES = 1024

_Said = dict[Source | None, tuple[float, Obstacle]]
"""Why no node comes and when that was said, by who said it."""


class AutoscalerRefusals:
    """What autoscalers have refused, by the shape of the pod, until nodes or pools change."""

    def __init__(self) -> None:
        self._version = 0
        self._about: Hashable = None
        self._said = Recent[Hashable, _Said](_MOST_SHAPES)

    @property
    def version(self) -> int:
        """Changes with what is remembered, also by the passing of time."""
        self._forget_old()
        return self._version

    def refused(
        self, shape: Hashable, source: Source | None, obstacle: Obstacle, about: Hashable
    ) -> None:
        """Remember why no node comes for pods of this shape; *about* are the nodes and pools.

        The *source* is the autoscaler that said no; None if none did, and still no node came.
        """
        self._forget_if_changed(about)
        self._forget_old()
        said = self._said.of(shape, dict)
        if source not in said or said[source][1] != obstacle:  # autoscalers repeat themselves
            self._version += 1
        said[source] = time.monotonic(), obstacle

    def obstacles(self, shape: Hashable, about: Hashable) -> dict[Source | None, Obstacle]:
        """Return why no node comes for pods of this shape, by who said it."""
        self._forget_if_changed(about)
        self._forget_old()
        return {source: obstacle for source, (_, obstacle) in self._said.get(shape, {}).items()}

    def _forget_if_changed(self, about: Hashable) -> None:
        has_changed = self._about != about
        self._about = about  # the very same object is compared at once
        if has_changed and self._said:
            self._said.clear()
            self._version += 1

    def _forget_old(self) -> None:
        oldest = time.monotonic() - REMEMBERED_SECONDS
        for shape, said in list(self._said.items()):
            valid = {source: it for source, it in said.items() if it[0] >= oldest}
            if len(valid) < len(said):
                self._version += 1
                self._said[shape] = valid
                if not valid:
                    del self._said[shape]


class Pools:
    """The pools of one cluster. Without an autoscaler's objects, its module isn't loaded.

    Attributes:
        refusals: Why no node comes, as autoscalers have answered.
        usual: How long new nodes took.
        nominated_at: When Karpenter has said last that it makes a machine for a pod, in seconds of
            the monotonic clock.
    """

    def __init__(
        self, state: ClusterState, objects: AutoscalerObjects, autoscaling: str = DETECT
    ) -> None:
        self._state = state
        self._objects = objects
        self._autoscaling = autoscaling
        self._karpenter: Karpenter | None = None
        self._autoscaler: NodeGroups | None = None
        self._shown = UntilChanged[tuple[Sign, ...]]()
        self._nodes = UntilChanged[frozenset[str]]()
        self.refusals = AutoscalerRefusals()
        self.usual = UsualTimes[str]()
        self.nominated_at = -math.inf

    def seen(self, filters: Filters) -> "list[Growth]":
        """Return how the pools of autoscalers that the hub sees can grow for a pod."""
        if self._autoscaling == NONE:
            return []
        seen = self._find_karpenter(), self._find_autoscaler()
        growths = [growth for it in seen if it is not None for growth in it.growths(filters)]
        return [replace(it, minutes=self.usual.minutes(it.pool)) for it in growths]

    def _find_karpenter(self) -> "Karpenter | None":
        if self._karpenter is None and self._objects.node_pools:
            from gpuspawner.scaling.karpenter import Karpenter

            self._karpenter = Karpenter(self._state, self._objects)
        return self._karpenter

    def _find_autoscaler(self) -> "NodeGroups | None":
        if self._autoscaler is None and self._objects.autoscaler_status is not None:
            from gpuspawner.scaling.cluster_autoscaler import NodeGroups

            self._autoscaler = NodeGroups(self._state, self._objects)
        return self._autoscaler

    @property
    def _groups(self) -> "tuple[NodeGroup, ...] | None":
        """Cluster Autoscaler's groups, as `NodeGroups.groups`."""
        autoscaler = self._find_autoscaler()
        return autoscaler.groups if autoscaler else None

    def claim(self, name: str) -> NodeClaim | None:
        """Return a NodeClaim; None if it is gone, or if the hub may not see it."""
        return self._objects.find(NodeClaim, name)

    def has_lost(self, claim: str) -> bool:
        """Whether a NodeClaim that Karpenter has named is gone, as far as the hub may see."""
        return self._objects.known("NodeClaim") and self.claim(claim) is None

    @property
    def may_come_untold(self) -> bool:
        """Whether Karpenter may make a machine for a pod, though neither it nor a claim says so."""
        is_telling = time.monotonic() - self.nominated_at < _UNTOLD_SECONDS
        # Claims count with their pools alone.
        return is_telling and not all(map(self._objects.known, ("NodeClaim", "NodePool")))

    def declared(self, pool: DeclaredPool, filters: Filters) -> "Growth":
        """Return how a declared pool can grow for a pod; its measured time is better."""
        from gpuspawner.scaling.node_pool import declared_growth

        growth = declared_growth(self._state, pool, filters)
        measured = self.usual.minutes(growth.pool)
        return growth if measured is None else replace(growth, minutes=measured)

    def others(
        self, refused: Container[Source | None] = (), filters: Filters | None = None
    ) -> Source | None:
        """Return why a pool that the hub doesn't see may grow; None if none may.

        Args:
            refused: The autoscalers that have said no.
            filters: Of the pod for which it may grow; None for any pod.
        """
        if self._autoscaling == NONE:
            return None
        if self._autoscaling == ALWAYS:
            hidden = {Source.KARPENTER, Source.CLUSTER_AUTOSCALER}
            return None if any(it in refused for it in hidden) else Source.CONFIGURATION
        if any(it.source not in refused and not self._sees(it, filters) for it in self._signs()):
            return Source.NODES
        if not self._objects.known("NodePool") and Source.KARPENTER not in refused:
            return Source.UNREAD
        is_hidden = self._is_hidden and Source.CLUSTER_AUTOSCALER not in refused
        return Source.UNREAD_STATUS if is_hidden else None

    @property
    def looks(self) -> int | None:
        """How often Cluster Autoscaler has looked at the cluster, as `NodeGroups.looks`."""
        autoscaler = self._find_autoscaler()
        return autoscaler.looks if autoscaler else None

    @property
    def names(self) -> tuple[tuple[Source, tuple[str, ...]], ...]:
        """The pools that the hub sees, by the autoscaler that grows them."""
        karpenter = tuple(it.name for it in self._objects.node_pools)
        groups = tuple(it.name for it in self._groups or ())
        both = (Source.KARPENTER, karpenter), (Source.CLUSTER_AUTOSCALER, groups)
        return tuple((source, names) for source, names in both if names)

    @property
    def version(self) -> object:
        """Changes with what autoscalers show and have answered, and with the passing of time."""
        autoscaler = self._find_autoscaler()
        is_old = autoscaler is not None and autoscaler.is_old
        return self._objects.version, is_old, self.refusals.version

    def about(self) -> Hashable:
        """Return what an autoscaler's answer depends on: the nodes, and the pools."""
        pools = tuple(
            (it.name, it.problem)
            if isinstance(it, Undecodable)
            else (it.name, repr(it.spec), repr(it.status.resources), it.is_ready)
            for it in self._objects.node_pools
        )
        nodes = self._nodes.of(self._state.version, (), lambda: frozenset(self._state.nodes))
        return nodes, pools, self._groups

    @property
    def _is_absent(self) -> bool:
        """Whether the cluster is known to have no status of Cluster Autoscaler."""
        return self._objects.known("ConfigMap") and self._objects.autoscaler_status is None

    @property
    def _is_hidden(self) -> bool:
        """Whether there is a status that tells nothing, or that the hub can't read any more."""
        if self._objects.autoscaler_status is not None:
            return self._groups is None
        return self._objects.has_had("ConfigMap") and not self._is_absent

    def _signs(self) -> Iterator[Sign]:
        """Yield the signs of autoscalers that may run."""
        nodes = self._state.nodes.values()
        shown = self._shown.of(self._state.lasting_version, (), lambda: signs(nodes))
        for sign in SIGNS:
            is_known = sign.kinds and all(map(self._objects.known, sign.kinds))
            tell = sign.kinds and all(map(self._objects.tells, sign.kinds))
            if tell or (sign in shown and not is_known):
                yield sign

    def _sees(self, sign: Sign, filters: Filters | None) -> bool:
        """Whether the hub sees all pools by which this autoscaler may help a pod."""
        if sign.source is Source.KARPENTER:
            return self._objects.known("NodePool")
        # A pool that the autoscaler makes has a name of its own.
        has_name = filters is not None and any(it in filters.choice.labels for it in POOL_LABELS)
        if sign.makes_pools and not has_name:
            return False
        # Beside Karpenter, an autoscaler without a status is none, unless objects tell of it.
        is_alone = self._is_absent and self._objects.node_pools and not sign.kinds
        return bool(self._groups or is_alone)

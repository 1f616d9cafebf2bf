"""Karpenter's objects and those for Cluster Autoscaler, as the live view has read them."""

from gpuspawner.kube.autoscaling import ClusterAutoscaler, ConfigMap, NodeClaim, NodePool
from gpuspawner.kube.caches import UntilChanged
from gpuspawner.kube.objects import Undecodable
from gpuspawner.kube.store import ObjectStore

STATUS = ("kube-system", "cluster-autoscaler-status")
"""Namespace and name of the ConfigMap to which Cluster Autoscaler writes its status by default."""


class AutoscalerObjects(ObjectStore):
    """The objects that tell of nodes to come."""

    def __init__(self) -> None:
        super().__init__()
        self._startup_taints = UntilChanged[frozenset[str]]()

    @property
    def node_pools(self) -> list[NodePool | Undecodable]:
        """Karpenter's pools, those that can't be read too."""
        found = self._objects.get("NodePool", {}).values()
        return [it for it in found if isinstance(it, NodePool | Undecodable)]

    @property
    def startup_taints(self) -> frozenset[str]:
        """The keys of the taints that nodes have only while they start."""
        return self._startup_taints.of(self.version, (), self._read_startup_taints)

    def _read_startup_taints(self) -> frozenset[str]:
        specs = [it.spec.template.spec for it in self.every(NodePool)]
        specs += [it.spec for it in self.every(NodeClaim)]
        lasting = {taint.key for it in specs for taint in it.taints or ()}
        starting = {taint.key for it in specs for taint in it.startup_taints or ()}
        named = (it.spec.startup_taints or () for it in self.every(ClusterAutoscaler))
        return frozenset(starting.union(*named) - lasting)

    def tells(self, kind: str) -> bool:
        """Whether an object of a kind, such as MachineAutoscaler, tells of Cluster Autoscaler."""
        return bool(self._objects.get(kind))

    @property
    def autoscaler_status(self) -> str | None:
        """Cluster Autoscaler's status; "" if it can't be read, None if there is none."""
        maps = self._objects.get("ConfigMap", {})  # a view has at most one, a folder any number
        found = maps.get(min(maps, key=lambda key: key[1] != STATUS[1], default=STATUS))
        if found is None:
            return None
        return (found.data or {}).get("status", "") if isinstance(found, ConfigMap) else ""

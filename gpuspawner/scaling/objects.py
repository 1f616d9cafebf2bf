"""Karpenter's and Cluster Autoscaler's objects, as the live view has read them."""

from gpuspawner.kube.autoscaling import ConfigMap, NodeClaim, NodePool
from gpuspawner.kube.objects import Undecodable
from gpuspawner.kube.store import ObjectStore

STATUS = ("kube-system", "cluster-autoscaler-status")
"""Namespace and name of the ConfigMap to which Cluster Autoscaler writes its status."""


class AutoscalerObjects(ObjectStore):
    """The objects that tell of nodes to come."""

    @property
    def node_pools(self) -> list[NodePool | Undecodable]:
        """Karpenter's pools, those that can't be read too."""
        found = self._objects.get("NodePool", {}).values()
        return [it for it in found if isinstance(it, NodePool | Undecodable)]

    @property
    def node_claims(self) -> list[NodeClaim]:
        """Karpenter's claims that can be read."""
        return self.every(NodeClaim)

    @property
    def autoscaler_status(self) -> str | None:
        """Cluster Autoscaler's status; "" if it can't be read, None if there is none."""
        namespace, name = STATUS
        found = self.find(ConfigMap, name, namespace)
        if found is None:
            return None
        return (found.data or {}).get("status", "") if isinstance(found, ConfigMap) else ""

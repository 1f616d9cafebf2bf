"""A real Kubernetes control plane on this machine, with simulated GPU nodes.

The demo and the tests use it; gpuspawner itself never imports it.
"""

from localcluster.client import ApiError, Client
from localcluster.cluster import LocalCluster, Pods
from localcluster.clusterautoscaler.settings import ClusterAutoscaler, Scaling
from localcluster.errors import LocalClusterError
from localcluster.fields import FleetError
from localcluster.fleet import Fleet, NodeGroup
from localcluster.karpenter.settings import InstanceType, Karpenter, NodePool, Requirement
from localcluster.taint import Taint

__all__ = [
    "ApiError",
    "Client",
    "ClusterAutoscaler",
    "Fleet",
    "FleetError",
    "InstanceType",
    "Karpenter",
    "LocalCluster",
    "LocalClusterError",
    "NodeGroup",
    "NodePool",
    "Pods",
    "Requirement",
    "Scaling",
    "Taint",
]

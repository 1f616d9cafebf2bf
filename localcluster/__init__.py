"""A real Kubernetes control plane on this machine, with simulated GPU nodes.

The demo and the tests use it; gpuspawner itself never imports it.
"""

from localcluster.client import ApiError, Client
from localcluster.cluster import LocalCluster, Pods
from localcluster.errors import LocalClusterError
from localcluster.fleet import Fleet, FleetError, NodeGroup, Taint

__all__ = [
    "ApiError",
    "Client",
    "Fleet",
    "FleetError",
    "LocalCluster",
    "LocalClusterError",
    "NodeGroup",
    "Pods",
    "Taint",
]

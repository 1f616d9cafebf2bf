"""Runs the autoscaler of a fleet beside a control plane."""

from pathlib import Path
from typing import Protocol

from localcluster.client import Client
from localcluster.clusterautoscaler.running import RunningClusterAutoscaler
from localcluster.errors import LocalClusterError
from localcluster.fleet import Fleet
from localcluster.karpenter.running import RunningKarpenter
from localcluster.karpenter.settings import Karpenter
from localcluster.processes import Process


class RunningAutoscaler(Protocol):
    """An autoscaler that runs."""

    process: Process

    def stop(self) -> None:
        """End it."""
        ...

    def remove_traces(self) -> None:
        """Delete what it wrote, once it has ended."""
        ...


def run(fleet: Fleet, directory: Path, kubeconfig: Path, api: Client) -> RunningAutoscaler:
    """Start a fleet's autoscaler.

    Args:
        fleet: a fleet with an autoscaler.
        directory: the cluster's directory.
        kubeconfig: the administrator's.
        api: a client with every right.

    Raises:
        LocalClusterError: the fleet has none, or it can't be built or started.
    """
    settings = fleet.autoscaler
    if settings is None:
        raise LocalClusterError("the fleet has no autoscaler")
    if isinstance(settings, Karpenter):
        return RunningKarpenter(directory, kubeconfig, api, settings)
    return RunningClusterAutoscaler(directory, kubeconfig, api, fleet.groups, settings)

"""Starts and stops the played Cluster Autoscaler as a process."""

from dataclasses import asdict
from pathlib import Path

import yaml

from localcluster.client import Client, unless_gone
from localcluster.clusterautoscaler.autoscaler import STATUS_PATH
from localcluster.clusterautoscaler.settings import ClusterAutoscaler
from localcluster.fleet import NodeGroup
from localcluster.processes import Process, module_process, undisturbed


class RunningClusterAutoscaler:
    """The played Cluster Autoscaler beside a control plane, from its start to its stop."""

    def __init__(
        self,
        directory: Path,
        kubeconfig: Path,
        api: Client,
        groups: tuple[NodeGroup, ...],
        settings: ClusterAutoscaler,
    ) -> None:
        self._api = api
        path = directory / "autoscaler.yaml"
        path.write_text(yaml.safe_dump(fleet_data(groups, settings)))
        arguments: list[str | Path] = ["--kubeconfig", kubeconfig, "--fleet", path]
        log = directory / "autoscaler.log"
        with undisturbed():
            self.process: Process = module_process("localcluster.clusterautoscaler", arguments, log)

    def stop(self) -> None:
        """End the autoscaler."""
        self.process.stop()

    def remove_traces(self) -> None:
        """Delete what the autoscaler wrote, once it has ended."""
        with unless_gone():
            self._api.delete(STATUS_PATH)


def fleet_data(groups: tuple[NodeGroup, ...], settings: ClusterAutoscaler) -> dict[str, object]:
    """Return the plain data from which `localcluster.fleet.parse` makes this fleet."""
    nodes = [{**asdict(group), "taints": [asdict(t) for t in group.taints]} for group in groups]
    return {"nodes": nodes, "autoscaler": {"name": "cluster-autoscaler", **asdict(settings)}}

"""Starts and stops Karpenter as a process."""

import json
import os
from pathlib import Path

import yaml

from localcluster import binaries, crds
from localcluster.client import Client
from localcluster.karpenter import objects
from localcluster.karpenter.settings import Karpenter
from localcluster.ports import free_ports
from localcluster.processes import Process, undisturbed, wait_until

_NODES = "/api/v1/nodes"
_NODE_POOLS = f"/apis/{objects.GROUP}/v1/nodepools"
_NODE_CLAIMS = f"/apis/{objects.GROUP}/v1/nodeclaims"
_NODE_CLASSES = f"/apis/{objects.KWOK_GROUP}/v1alpha1/kwoknodeclasses"
_TIMEOUT = 60.0


class RunningKarpenter:
    """Karpenter beside a control plane, from its start to its stop; its node pools are ready.

    Raises:
        LocalClusterError: Karpenter couldn't be built, ended, or wasn't ready in time.
    """

    def __init__(self, directory: Path, kubeconfig: Path, api: Client, settings: Karpenter) -> None:
        built = binaries.karpenter()
        self._api = api
        found = [yaml.safe_load(path.read_text()) for path in (built / "crds").iterdir()]
        self._crds = crds.CRDs(api, "Karpenter", found)
        self._crds.create()
        types = directory / "instance-types.json"
        types.write_text(
            json.dumps([objects.instance_type(kind) for kind in settings.instance_types])
        )
        metrics, health = free_ports(2)
        sold_out = [kind.name for kind in settings.instance_types if kind.is_sold_out]
        environment = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "SYSTEM_NAMESPACE": "kube-system",
            "LOCALCLUSTER_SOLD_OUT": ",".join(sold_out),
        }
        command: list[str | Path] = [
            built / "karpenter",
            "--disable-leader-election",
            f"--metrics-port={metrics}",
            f"--health-probe-port={health}",
            f"--instance-types-file-path={types}",
        ]
        api.create(_NODE_CLASSES, objects.node_class(settings))
        for pool in settings.node_pools:
            api.create(_NODE_POOLS, objects.node_pool(pool, settings.device_seconds))
        with undisturbed():
            log = directory / "karpenter.log"
            self.process = Process("karpenter", command, log, environment)
        try:
            wait_until(self._is_ready, [self.process], _TIMEOUT, "Karpenter's node pools are ready")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End Karpenter."""
        self.process.stop(grace=0)

    def remove_traces(self) -> None:
        """Delete Karpenter's objects, once it has ended, and let its nodes be deleted."""
        wait_until(self._has_no_objects, [], _TIMEOUT, "Karpenter's objects are gone")
        self._crds.delete()

    def _has_no_objects(self) -> bool:
        """Delete what is left, and return whether nothing was."""
        for node in self._api.items(_NODES):
            crds.free(self._api, crds.path_of(_NODES, node), node, "karpenter.")
        return crds.delete_all(
            self._api, (_NODE_CLAIMS, _NODE_POOLS, _NODE_CLASSES), finalizers="karpenter."
        )

    def _is_ready(self) -> bool:
        return all(crds.holds(pool, "Ready") for pool in self._api.items(_NODE_POOLS))

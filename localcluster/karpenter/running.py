"""Starts and stops Karpenter as a process."""

import json
import os
from pathlib import Path

import yaml

from localcluster import binaries
from localcluster.client import Client, Object, unless_gone
from localcluster.karpenter import objects
from localcluster.karpenter.settings import Karpenter
from localcluster.ports import free_ports
from localcluster.processes import Process, undisturbed, wait_until

_NODES = "/api/v1/nodes"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
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
        self._crds = [yaml.safe_load(path.read_text()) for path in (built / "crds").iterdir()]
        self._create_crds()
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
        """Delete Karpenter's objects, once it has ended, and let its nodes be deleted.

        The API server's own clean-up of a CRD's objects may wait for more than a minute, if it
        can't list them at once. So the objects go first, and then the CRDs without a clean-up.
        """
        wait_until(self._has_no_objects, [], _TIMEOUT, "Karpenter's objects are gone")
        for path in map(_crd_path, self._crds):
            self._api.delete(path)
            with unless_gone():
                self._api.patch(path, {"metadata": {"finalizers": []}})
        wait_until(lambda: not self._present_crds(), [], _TIMEOUT, "Karpenter's CRDs are gone")

    def _has_no_objects(self) -> bool:
        """Delete what is left, and return whether nothing was.

        The API server may still have been busy with Karpenter's last requests when it ended, so
        once isn't enough.
        """
        for node in self._api.items(_NODES):
            self._free(f"{_NODES}/{node['metadata']['name']}", node)
        left = [
            (f"{path}/{item['metadata']['name']}", item)
            for path in (_NODE_CLAIMS, _NODE_POOLS, _NODE_CLASSES)
            for item in self._api.items(path)
        ]
        for path, item in left:
            self._free(path, item)
            with unless_gone():
                self._api.delete(path)
        return not left

    def _free(self, path: str, item: Object) -> None:
        """Remove the finalizers that nobody would serve any more."""
        finalizers = item["metadata"].get("finalizers", [])
        others = [name for name in finalizers if not name.startswith("karpenter.")]
        if len(others) < len(finalizers):
            with unless_gone():
                self._api.patch(path, {"metadata": {"finalizers": others}})

    def _create_crds(self) -> None:
        for crd in self._crds:
            self._api.create(_CRDS, crd)
        wait_until(self._are_established, [], _TIMEOUT, "the API server knows Karpenter's CRDs")

    def _are_established(self) -> bool:
        found = self._present_crds()
        return len(found) == len(self._crds) and all(_is(crd, "Established") for crd in found)

    def _present_crds(self) -> list[Object]:
        names = {crd["metadata"]["name"] for crd in self._crds}
        return [crd for crd in self._api.items(_CRDS) if crd["metadata"]["name"] in names]

    def _is_ready(self) -> bool:
        return all(_is(pool, "Ready") for pool in self._api.items(_NODE_POOLS))


def _is(item: Object, condition: str) -> bool:
    conditions = item.get("status", {}).get("conditions") or []
    return any(c["type"] == condition and c["status"] == "True" for c in conditions)


def _crd_path(crd: Object) -> str:
    return f"{_CRDS}/{crd['metadata']['name']}"

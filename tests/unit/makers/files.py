"""Clusters in files, as `kubectl get -o json` prints them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config

from gpuspawner.doctor.application import main
from gpuspawner.doctor.hub import Hub, of_files
from gpuspawner.doctor.offered_servers import listed
from gpuspawner.gates.what_if import NOBODY, Tried, try_out
from gpuspawner.policies.owner import Owner
from localcluster import Fleet, fleet
from localcluster.nodes import node_objects

Plain = dict[str, Any]

EVERYTHING_ELSE = (
    "namespaces", "persistentvolumeclaims", "persistentvolumes", "storageclasses", "csinodes",
    "csidrivers", "csistoragecapacities", "volumeattachments", "priorityclasses", "deviceclasses",
)  # fmt: skip
T4 = """
c = get_config()
c.KubeSpawner.namespace = "jhub"
c.GPUSpawner.accelerators = {"t4": {
    "display_name": "NVIDIA T4", "counts": [1, 2],
    "node_selector": {"nvidia.com/gpu.product": "Tesla-T4"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}}
"""


class Files:
    """A folder with a configuration file and a cluster."""

    def __init__(self, folder: Path, nodes: Iterable[Plain], pods: Iterable[Plain] = ()) -> None:
        self.folder = folder
        self.put("nodes", nodes)
        self.put("pods", pods)
        for plural in EVERYTHING_ELSE:
            self.put(plural, ())
        self.configuration = folder / "jupyterhub_config.py"
        self.configuration.write_text(T4)

    def put(self, plural: str, objects: Iterable[Plain]) -> None:
        """Write the objects of a kind."""
        text = json.dumps({"kind": "List", "items": list(objects)})
        (self.folder / f"{plural}.json").write_text(text)

    def ask(self, *arguments: str) -> int:
        """Run a command on the files, and return its exit status."""
        where = ("--config", str(self.configuration), "--from", str(self.folder))
        return main([*arguments, *where])


async def tried_on(
    folder: Path, owner: Owner = NOBODY, *, kube: Plain | None = None, **ours: Any
) -> tuple[Hub, list[Tried]]:
    """Try all that a hub with these settings of KubeSpawner and GPUSpawner offers, on files."""
    hub = of_files(Config(GPUSpawner=ours, KubeSpawner=kube or {}), folder, owner)
    return hub, [await try_out(hub, it) for it in await listed(hub)]


def of_fleet(name: str | Fleet) -> list[Plain]:
    """Return the nodes of a fleet."""
    return list(node_objects(name if isinstance(name, Fleet) else fleet.load(name)))


def using(node: str, gpus: int, name: str = "theirs") -> Plain:
    """Return a pod that runs on a node; on none if its name is empty."""
    amounts = {"nvidia.com/gpu": str(gpus)}
    resources = {"requests": amounts, "limits": amounts}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "jhub"},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "notebook", "resources": resources}],
        },
        "status": {"phase": "Running" if node else "Pending"},
    }


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return what a command printed as JSON."""
    return json.loads(capsys.readouterr().out)

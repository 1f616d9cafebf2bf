"""Runs the commands as an administrator would, with the hub's rights on a real API server."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes_asyncio.config.kube_config
import pytest
from kubespawner.clients import load_config

from gpuspawner.doctor.application import main
from localcluster import LocalCluster, rbac
from tests.fixtures.cluster import own_namespace

Plain = dict[str, Any]

FIRST = """
c = get_config()
c.KubeSpawner.namespace = {namespace!r}
c.Spawner.start_timeout = 900
"""

DEMO = """
gpu = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
c.GPUSpawner.accelerators = {
    "a100": {
        "display_name": "NVIDIA A100",
        "counts": [1, 2],
        "node_selector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"},
        "tolerations": [gpu],
    },
    "t4": {
        "display_name": "NVIDIA T4",
        "node_selector": {"nvidia.com/gpu.product": "Tesla-T4"},
        "tolerations": [gpu],
    },
    "slice": {
        "display_name": "A slice of an A100",
        "resource": "nvidia.com/mig-1g.5gb",
        "node_selector": {"nvidia.com/mig.config": "all-balanced"},
        "tolerations": [gpu],
    },
}
c.GPUSpawner.memory_choices = ["1Gi", "4Gi"]
"""
"""Offers that suit the fleet demo."""


@dataclass(frozen=True)
class Hub:
    """A namespace with the rights of a hub, and a folder for its configuration."""

    cluster: LocalCluster
    namespace: str
    kubeconfig: Path
    folder: Path

    def configure(self, text: str) -> Path:
        """Write a configuration file, which ends as the documentation says."""
        return self.write(f"{text}\nimport gpuspawner\ngpuspawner.configure(c)\n")

    def write(self, text: str) -> Path:
        """Write a configuration file as it is."""
        path = self.folder / "jupyterhub_config.py"
        path.write_text(FIRST.format(namespace=self.namespace) + text)
        return path

    def doctor(self, configuration: Path, *more: str) -> tuple[int, dict[str, list[Plain]]]:
        """Return the doctor's exit status and its findings by severity."""
        arguments = ("doctor", "--config", str(configuration), "--output", "json", *more)
        status, printed = self.ask(*arguments)
        found: dict[str, list[Plain]] = {"error": [], "warning": [], "fine": []}
        for finding in json.loads(printed)["findings"]:
            found[finding["severity"]].append(finding)
        return status, found

    def ask(self, *arguments: str) -> tuple[int, str]:
        """Run a command, and return its exit status and what it prints."""
        location = kubernetes_asyncio.config.kube_config
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
            patch.setattr(location, "KUBE_CONFIG_DEFAULT_LOCATION", str(self.kubeconfig))
            load_config.cache_clear()
            status = main(arguments)
        return status, printed.getvalue()


@contextmanager
def hub_on(cluster: LocalCluster, folder: Path) -> Iterator[Hub]:
    """Make a namespace and the hub's rights, until the context ends."""
    with own_namespace(cluster) as namespace:
        yield Hub(cluster, namespace, rbac.hub_kubeconfig(cluster, namespace), folder)


def troubles(found: dict[str, list[Plain]]) -> list[Plain]:
    """Return all findings but those that are fine."""
    return found["error"] + found["warning"]

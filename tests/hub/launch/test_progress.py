"""The progress of a start, with every kind of caller."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from traitlets.config import Config

from gpuspawner import GPUSpawner
from localcluster import LocalCluster
from tests.hub.in_process import hub_in_process

pytestmark = pytest.mark.each_hub


async def test_a_start_without_the_hub_s_hook_reports_progress(
    running_cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KubeSpawner's own tests start it like this, and so may a wrapping spawner."""
    c = Config()
    c.KubeSpawner.namespace = "default"
    c.KubeSpawner.image = "lab:1"
    c.JupyterHub.hub_connect_url = "http://hub:8081"
    kubeconfig = running_cluster.kubeconfig
    async with hub_in_process(monkeypatch, tmp_path, kubeconfig, GPUSpawner, c) as running:
        spawner = running.user("wrapped").spawner
        starting = spawner.start()
        try:
            async with asyncio.timeout(30):
                async for event in spawner.progress():
                    assert event["message"]
                    break
        finally:
            starting.cancel()
            await asyncio.wait([starting])
            await spawner.stop(now=True)

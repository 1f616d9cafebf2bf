"""The newest of what hubs have beside gpuspawner, all at once: `tools/nox --session newest`."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.hub.launch.test_idle_gpu_servers import were_active_before
from tests.servers.prometheus import empty_prometheus
from tests.waiting import wait_for

pytestmark = pytest.mark.nightly("it changes only when others release something")
pytest.importorskip("jupyterhub_fancy_profiles", reason="version: not with each hub")

FANCY = """
from jupyterhub_fancy_profiles import setup_ui
from kubespawner import KubeSpawner
class CustomSpawner(KubeSpawner):
    pass
c.JupyterHub.spawner_class = CustomSpawner
c.JupyterHub.cleanup_servers = False
c.KubeSpawner.profile_list = [
    {"display_name": "CPU only", "slug": "cpu"},
    {"display_name": "GPU server", "slug": "gpu", "kubespawner_override": {
        "extra_resource_limits": {"nvidia.com/gpu": "1"}, "node_selector": {"gpu": "t4"}}}]
setup_ui(c)
"""
CULLER = """
import sys
command = [sys.executable, "-m", "jupyterhub_idle_culler", "--timeout=1800", "--cull-every=1"]
c.JupyterHub.services.append({"name": "culler", "command": command})
c.JupyterHub.load_roles.append({"name": "culler", "services": ["culler"], "scopes": [
    "list:users", "read:users:activity", "read:servers", "delete:servers"]})
"""
QUOTAS = """
from jupyterhub_usage_quotas import setup_usage_quotas
c.JupyterHub.load_groups = {{"metered": {{"users": ["mia"]}}}}
c.UsageQuotaManager.prometheus_url = {prometheus!r}
c.UsageQuotaManager.metrics_exporter_token = "of-no-service"
c.UsageQuotaManager.prometheus_emit_interval = 86400
c.UsageQuotaManager.failover_open = False
c.UsageQuotaManager.policy = [
    {{"resource": "memory", "limit": "0G", "window": 30, "scope": {{"group": ["metered"]}}}}]
setup_usage_quotas(c)
"""


HAS_QUOTAS = find_spec("jupyterhub_usage_quotas") is not None


def test_fancy_profiles_show_what_is_free_and_the_culler_frees_it(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    with start_gpu_hub(FANCY + CULLER) as hub:
        assert '"description": "Free: 1 of 1 free"' in hub.person("alice").open("/hub/spawn").html
        hub.start_until_ready("alice", {"profile": "gpu"})
        assert '"description": "In use: ' in hub.person("bob").open("/hub/spawn").html
        assert hub.start("bob", {"profile": "gpu"}).status_code == 409

        were_active_before(hub, alice=31)

        wait_for(lambda: not hub.pods.names())
        hub.start_until_ready("bob", {"profile": "gpu"})


@pytest.mark.skipif(not HAS_QUOTAS, reason="version: usage-quotas 0.2 needs JupyterHub 6")
def test_whom_a_usage_quota_refuses_is_promised_no_gpu(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes
) -> None:
    add_nodes(t4_nodes(1, 1))
    with (
        empty_prometheus() as prometheus,
        start_gpu_hub(FANCY + CULLER + QUOTAS.format(prometheus=prometheus)) as hub,
    ):
        refused = hub.start("mia", {"profile": "gpu"})

        assert refused.status_code == 422, refused.text
        assert "over the quota limit" in refused.json()["message"]
        hub.start_until_ready("noa", {"profile": "gpu"})

"""The how-to about idle GPU servers: its configuration, with the real culler in a real hub."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from localcluster import Fleet, NodeGroup
from tests.fixtures.cluster import AddNodes
from tests.hub.configurations import T4, t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.hub.kept import LendHub
from tests.hub.policies.test_policies import NODES, OFFERS
from tests.hub.policies.test_policy_attempts_by_rest import own_token
from tests.hub.running import RunningHub
from tests.hub.web.test_documented_examples import examples
from tests.waiting import wait_for

CULLER, SERVICE, CULLER_WITH_LINE, ENDS_ITSELF, JUPYTER = examples(
    "how-to/idle-gpu-servers.md", "python"
)
CPU_NODE = Fleet((NodeGroup("cpu", 1, {"cpu": "8", "memory": "16Gi", "pods": "110"}),))
ONE_EACH = """
c.JupyterHub.cleanup_servers = False
c.GPUSpawner.policies = {"one": {"gpus_per_user": 1}}
"""
PROFILES = """
c.JupyterHub.allow_named_servers = True
c.KubeSpawner.profile_list = [
    {"slug": "cpu", "display_name": "No GPU"},
    {"slug": "gpu", "display_name": "GPU", "kubespawner_override": {
        "extra_resource_limits": {"nvidia.com/gpu": "1"},
        "node_selector": {"gpu": "t4"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}},
]
"""
# Real servers, which read the documented file.
JUPYTER_SERVERS = """
import sys
c.KubeSpawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser", "--allow-root"]
c.KubeSpawner.environment = {{"JUPYTER_CONFIG_PATH": {folder!r}}}
c.KubeSpawner.poll_interval = 1
c.KubeSpawner.http_timeout = 120  # a Jupyter server needs more than half a minute on a busy machine
"""


def with_culler(folder: Path, culler: str = CULLER) -> str:
    """The documented service, which looks more often, and with its file in this folder."""
    file = folder / "idle_culler_config.py"
    file.write_text(culler)
    service = SERVICE.replace("/srv/jupyterhub/idle_culler_config.py", str(file))
    return service + 'c.JupyterHub.services[-1]["command"].append("--cull-every=1")\n'


def were_active_before(hub: RunningHub, **ago: int) -> None:
    """Restart the hub; then a server of each user was last active so many minutes ago."""
    cases = " ".join(f"WHEN name = '{user}' THEN {n}" for user, n in ago.items())
    minutes = f"(SELECT CASE {cases} END FROM users WHERE id = user_id)"
    hub.change_database(
        f"UPDATE spawners SET last_activity = datetime(?, '-' || {minutes} || ' minutes')",
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S"),
    )


@pytest.mark.parametrize(
    ("offers", "gpu", "cpu"),
    [
        # The first accelerator is the default, so this start chooses nothing.
        pytest.param(OFFERS, None, {"accelerator": None}, id="accelerators"),
        pytest.param(
            PROFILES,
            {"profile": "gpu"},
            {"profile": "cpu"},
            id="profiles",
            marks=pytest.mark.nightly("the culler knows a server only by its GPUs"),
        ),
    ],
)
def test_the_culler_stops_gpu_servers_sooner_and_frees_their_gpus(
    start_gpu_hub: StartGPUHub,
    add_nodes: AddNodes,
    tmp_path: Path,
    offers: str,
    gpu: object,
    cpu: object,
) -> None:
    add_nodes(NODES)
    add_nodes(CPU_NODE)
    with start_gpu_hub(offers + ONE_EACH + with_culler(tmp_path)) as hub:
        for user, options in {"idle": gpu, "busy": gpu, "without": cpu, "asleep": cpu}.items():
            hub.start_until_ready(user, options)
        asked = {"profile": "gpu"} if gpu else {"accelerator": "t4"}
        assert hub.api("POST", "/users/idle/servers/more", asked).status_code == 409

        were_active_before(hub, idle=21, busy=10, without=21, asleep=241)
        wait_for(lambda: hub.pods.names() == {"jupyter-busy", "jupyter-without"})
        wait_for(lambda: hub.api("POST", "/users/idle/servers/more", asked).status_code == 201)


def test_the_culler_stops_idle_gpu_servers_sooner_while_somebody_waits_for_their_gpus(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes, tmp_path: Path
) -> None:
    add_nodes(t4_nodes(2, 1))
    queue = "c.JupyterHub.cleanup_servers = False\nc.GPUSpawner.queue = True\n"
    with start_gpu_hub(T4 + queue + with_culler(tmp_path, CULLER_WITH_LINE)) as hub:
        for user in ("idle", "busy"):
            hub.start_until_ready(user, {"accelerator": "t4"})
        were_active_before(hub, idle=21, busy=10)
        wait_for(lambda: "GET /hub/gpuspawner/line" in hub.log)

        hub.start("waits", {"accelerator": "t4", "wait": True})

        wait_for(lambda: hub.pods.names() == {"jupyter-waits", "jupyter-busy"}, timeout=60)


def test_only_gpu_servers_are_told_when_to_end(kept_hub: LendHub, add_nodes: AddNodes) -> None:
    add_nodes(NODES)
    add_nodes(CPU_NODE)
    hub = kept_hub(OFFERS + ENDS_ITSELF)
    for user, accelerator in (("with", "t4"), ("without", None)):
        hub.start(user, {"accelerator": accelerator})

    told = {
        it["name"]: it["value"]
        for it in hub.pods.bound("with")["spec"]["containers"][0]["env"]
        if "value" in it
    }
    assert told["END_IF_IDLE"] == "1200"
    others = hub.pods.bound("without")["spec"]["containers"][0]["env"]
    assert "END_IF_IDLE" not in {it["name"] for it in others}


@pytest.mark.nightly(why="a Jupyter server looks only once a minute whether it has been idle")
def test_a_gpu_server_ends_itself_and_frees_its_gpu(
    start_gpu_hub: StartGPUHub, add_nodes: AddNodes, tmp_path: Path
) -> None:
    add_nodes(NODES)
    add_nodes(CPU_NODE)
    often = "\nc.MappingKernelManager.cull_interval = 1\n"
    (tmp_path / "jupyter_server_config.py").write_text(JUPYTER + often)
    sooner = ENDS_ITSELF.replace('"1200"', '"1"')
    real = JUPYTER_SERVERS.format(folder=str(tmp_path))
    with start_gpu_hub(OFFERS + ONE_EACH + sooner + real) as hub:
        hub.start("without", {"accelerator": None})
        hub.start_until_ready("idle", {"accelerator": "t4"})
        hub.until_ready("without")
        kernels = f"{hub.url}/user/idle/api/kernels"
        person = hub.person("idle")
        assert person.session.post(kernels, **own_token(hub, "idle")).status_code == 201
        assert hub.api("POST", "/users/idle/servers/more", {"accelerator": "t4"}).status_code == 409

        wait_for(lambda: hub.pods.names() == {"jupyter-without"}, timeout=180)
        again = hub.api("POST", "/users/idle/servers/more", {"accelerator": "t4"})
        assert again.status_code in (201, 202)

"""The demo's additions to the repository's jupyterhub_config.py.

They set who may log in, the addresses of this machine, and what differs because pods are
processes here. `localcluster.demo` starts JupyterHub with this file.
"""

import json
import os
from pathlib import Path

c = get_config()  # type: ignore[name-defined]  # noqa: F821  (JupyterHub provides it)
demo = json.loads(os.environ["LOCALCLUSTER_DEMO"])
directory = Path(demo["directory"])

load_subconfig(demo["configuration"])  # type: ignore[name-defined]  # noqa: F821

# Anyone may log in under any name with any password: it listens on loopback only.
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.Authenticator.admin_users = {"admin"}

c.JupyterHub.bind_url = f"http://127.0.0.1:{demo['port']}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{demo['hub_port']}"
c.JupyterHub.hub_connect_ip = "127.0.0.1"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{demo['proxy_port']}"
c.ConfigurableHTTPProxy.command = [demo["proxy"]]
c.ConfigurableHTTPProxy.pid_file = str(directory / "proxy.pid")
c.JupyterHub.db_url = f"sqlite:///{directory}/jupyterhub.sqlite"
c.JupyterHub.cookie_secret_file = str(directory / "jupyterhub_cookie_secret")

c.KubeSpawner.namespace = demo["namespace"]
# A process has no image to take a command from.
c.KubeSpawner.cmd = ["jupyterhub-singleuser"]
c.KubeSpawner.args = [
    # The demo must work without the internet.
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LanguageServerManager.autodetect=False",
]

if demo["fleet"] == "demo":
    # The pool l4 is empty, and the hub discovers only what nodes have. So the models are
    # configured, all but the last as the hub would discover them.
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    common = {"tolerations": tolerations, "shared_memory": "8Gi"}
    a100 = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}
    models: dict[str, dict[str, object]] = {
        "a100-sxm4-40gb": {
            "display_name": "NVIDIA A100 SXM4 40 GB",
            "description": "40 GiB of memory",
            "counts": [1, 2],
            "node_selector": a100,
        },
        "a100-sxm4-40gb-mig-1g-5gb": {
            "display_name": "NVIDIA A100 SXM4 40 GB MIG 1g.5gb",
            "counts": [1, 2],
            "node_selector": a100,
            "resource": "nvidia.com/mig-1g.5gb",
        },
        "a100-sxm4-40gb-mig-3g-20gb": {
            "display_name": "NVIDIA A100 SXM4 40 GB MIG 3g.20gb",
            "node_selector": a100,
            "resource": "nvidia.com/mig-3g.20gb",
        },
        "tesla-t4": {
            "display_name": "NVIDIA Tesla T4",
            "description": "15 GiB of memory",
            "node_selector": {"nvidia.com/gpu.product": "Tesla-T4"},
        },
        "l4": {
            "display_name": "NVIDIA L4",
            "description": "22 GiB of memory",
            "node_selector": {"nvidia.com/gpu.product": "NVIDIA-L4"},
            "scale_up": {"max_nodes": 1, "minutes": 1},
        },
    }
    c.GPUSpawner.accelerators = {key: {**model, **common} for key, model in models.items()}
    c.GPUSpawner.default_accelerator = ""
    # No other pool grows. The hub can't know that by itself, so it would try a pod of each kind.
    c.GPUSpawner.autoscaling = "none"

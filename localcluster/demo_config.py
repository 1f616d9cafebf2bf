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

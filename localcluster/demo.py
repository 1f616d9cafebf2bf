"""A JupyterHub with the repository's configuration on a local cluster, to try gpuspawner."""

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import types
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from localcluster import binaries, rbac
from localcluster.cluster import LocalCluster, Pods
from localcluster.errors import LocalClusterError
from localcluster.fleet import load
from localcluster.ports import free_ports
from localcluster.processes import Process, undisturbed, wait_until

ROOT = Path(__file__).parent.parent
CONFIGURATION = ROOT / "jupyterhub_config.py"
NAMESPACE = "jhub"

_DEMO_CONFIGURATION = Path(__file__).with_name("demo_config.py")
_HUB_TIMEOUT = 180.0
# The hub stops the servers and its proxy first.
_HUB_GRACE = 20.0


class Demo:
    """A demo, which runs while the context is open.

    Args:
        directory: for all files of cluster and hub.
        fleet: the cluster's nodes: a shipped fleet's name, or a file.
        port: its port on 127.0.0.1; 0 picks a free one.
        configuration: JupyterHub's configuration file, loaded before ``demo_config.py``.
    """

    def __init__(
        self,
        directory: Path,
        *,
        fleet: str = "demo",
        port: int = 8000,
        configuration: Path = CONFIGURATION,
    ) -> None:
        self.directory = directory.absolute()
        self.cluster = LocalCluster(self.directory / "cluster", fleet=fleet, pods=Pods.RUN)
        self._fleet = fleet
        self._configuration = configuration
        free = free_ports(3)
        self.port = _checked(port) if port else free.pop()
        self._hub_port, self._proxy_port = free[:2]
        self._hub: Process | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The hub's address for users."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start cluster and hub, and return when users can log in.

        Raises:
            LocalClusterError: a part ended or did not become ready in time.
        """
        proxy = binaries.proxy()
        try:
            self._start(proxy)
        except BaseException:
            self.stop()
            raise

    def _start(self, proxy: Path) -> None:
        self.cluster.start()
        # The cluster is new, so the hub must not keep an earlier demo's database.
        for name in ("jupyterhub.log", "jupyterhub.sqlite"):
            (self.directory / name).unlink(missing_ok=True)
        self.cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        kubeconfig = rbac.hub_kubeconfig(self.cluster, NAMESPACE)
        settings = {
            "configuration": str(self._configuration),
            "fleet": self._fleet,
            "directory": str(self.directory),
            "namespace": NAMESPACE,
            "port": self.port,
            "hub_port": self._hub_port,
            "proxy_port": self._proxy_port,
            "proxy": str(proxy / "configurable-http-proxy"),
        }
        environment = {
            **_environment_of_no_cluster(),
            "KUBECONFIG": str(kubeconfig),
            "LOCALCLUSTER_DEMO": json.dumps(settings),
            "PATH": f"{proxy}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }
        with undisturbed():
            self._hub = Process(
                "jupyterhub",
                [sys.executable, "-m", "jupyterhub", "--config", _DEMO_CONFIGURATION],
                self.directory / "jupyterhub.log",
                environment,
                directory=self.directory,
                signal_at_our_end=signal.SIGTERM,
            )
        wait_until(self._is_ready, [self._hub], _HUB_TIMEOUT, "JupyterHub answers")

    def stop(self) -> None:
        """Stop hub, proxy and cluster, in order and in bounded time."""
        if self._hub:
            self._hub.stop(_HUB_GRACE)
            self._hub = None
            self._kill_proxy()
        self.cluster.stop()

    def check(self) -> None:
        """Raise a `LocalClusterError` if a part has ended."""
        self.cluster.check()
        if self._hub:
            self._hub.check()

    def _is_ready(self) -> bool:
        # The hub before the proxy: until the hub answers, the proxy logs an error for each request.
        return all(_answers(port) for port in (self._hub_port, self.port))

    def _kill_proxy(self) -> None:
        """Kill the proxy if the hub ended without stopping it and without removing this file."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.directory / "proxy.pid").read_text())
            if b"configurable-http-proxy" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


def run(directory: Path | None, *, fleet: str, port: int) -> None:
    """Run a demo until it is interrupted; without a directory, delete its files at the end."""
    with _directory(directory) as place:
        demo = Demo(place, fleet=fleet, port=port)
        names = ", ".join(load(fleet).node_names())
        began = time.monotonic()
        _tell(f"starting Kubernetes {binaries.KUBERNETES_VERSION} and JupyterHub; nodes: {names}")
        with demo:
            _tell(f"up after {time.monotonic() - began:.0f} s")
            _tell(f"ready {demo.url}")
            _tell("  log in as alice, bob or anyone else, with any password; admin administers")
            _tell(f"  {demo.cluster.directory}/kubectl get pods -n {NAMESPACE} shows the pods")
            _tell(f"  {demo.directory}/jupyterhub.log is the hub's log")
            _tell("  Ctrl-C ends it all")
            while True:
                time.sleep(1)
                demo.check()


@contextlib.contextmanager
def _directory(given: Path | None) -> Iterator[Path]:
    if given:
        given.mkdir(mode=0o700, parents=True, exist_ok=True)
        yield given
        return
    scratch = Path(tempfile.mkdtemp(prefix="gpuspawner-demo-"))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _checked(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise LocalClusterError(
                f"port {port}: {error.strerror}; choose another with --port, or --port 0"
            ) from error
    return port


def _environment_of_no_cluster() -> dict[str, str]:
    """Return our variables without those by which a pod or another hub would speak to ours."""
    foreign = ("KUBERNETES_", "JUPYTERHUB_", "CONFIGPROXY_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)}


def _answers(port: int) -> bool:
    try:
        # Requests to loopback must not go to a proxy that the environment names.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}/hub/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _tell(text: str) -> None:
    print(text, flush=True)

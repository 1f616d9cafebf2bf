"""configurable-http-proxy in front of a hub, started separately as the chart does.

A hub that starts its own proxy ends if the proxy doesn't answer within 10 s (JupyterHub 6.1,
jupyterhub/proxy.py), which is too short if several tests share two cores. And to start one takes
half a second of processor time, so that hubs have them one after the other.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from localcluster.binaries import proxy
from localcluster.ports import free_ports
from localcluster.processes import Process, wait_until

TOKEN = "the-tests-own-proxy-token"


@dataclass(frozen=True)
class Proxy:
    """A running proxy.

    Attributes:
        public: The port for users.
        api: The port where the hub sets its routes.
        hub: The port of the hub, which serves the error pages.
        process: The process.
    """

    public: int
    api: int
    hub: int
    process: Process

    def clear(self) -> bool:
        """Delete its routes, and return whether it has none now."""
        api = f"http://127.0.0.1:{self.api}/api/routes"
        try:
            for route in self._request("GET", api).json():
                self._request("DELETE", f"{api}{route}")
            return not self._request("GET", api).json()
        except requests.RequestException:
            return False

    def _request(self, method: str, url: str) -> requests.Response:
        token = {"Authorization": f"token {TOKEN}"}
        answer = requests.request(method, url, headers=token, timeout=60)
        answer.raise_for_status()
        return answer


_idle: list[Proxy] = []


@atexit.register
def _stop_all() -> None:
    for it in _idle:
        it.process.stop()


@contextmanager
def lent_proxy(folder: Path) -> Iterator[Proxy]:
    """Lend a proxy without routes until the block ends.

    Args:
        folder: The folder of its log, if it has to be started.

    Raises:
        LocalClusterError: It did not start; the message has the end of its log.
    """
    alive = [it for it in _idle if it.process.is_alive()]
    lent = alive[-1] if alive else _started(folder, *free_ports(3))
    _idle[:] = alive[:-1]
    try:
        yield lent
    finally:
        if lent.clear():
            _idle.append(lent)
        else:
            lent.process.stop()


@contextmanager
def running_proxy(folder: Path, public: int, api: int, hub: int) -> Iterator[None]:
    """Run a proxy with its log in this folder until the block ends.

    Raises:
        LocalClusterError: It did not start; the message has the end of its log.
    """
    started = _started(folder, public, api, hub)
    try:
        yield
    finally:
        started.process.stop()


def _started(folder: Path, public: int, api: int, hub: int) -> Proxy:
    command: list[str | Path] = [
        proxy() / "configurable-http-proxy",
        *("--ip", "127.0.0.1", "--port", str(public)),
        *("--api-ip", "127.0.0.1", "--api-port", str(api)),
        *("--error-target", f"http://127.0.0.1:{hub}/hub/error"),
    ]
    environment = {
        **os.environ,
        "PATH": f"{proxy()}{os.pathsep}{os.environ['PATH']}",
        "CONFIGPROXY_AUTH_TOKEN": TOKEN,
    }
    process = Process(
        "configurable-http-proxy",
        command,
        folder / "proxy.log",
        environment,
        signal_at_our_end=signal.SIGTERM,
    )
    try:
        wait_until(lambda: _answers(public) and _answers(api), [process], 120, process.name)
    except BaseException:
        process.stop()
        raise
    return Proxy(public, api, hub, process)


def _answers(port: int) -> bool:
    try:
        requests.get(f"http://127.0.0.1:{port}", timeout=5)
    except (requests.ConnectionError, requests.Timeout):
        return False
    return True

"""configurable-http-proxy in front of a hub, started separately as the chart does.

A hub that starts its own proxy ends if the proxy doesn't answer within 10 s (JupyterHub 6.1,
jupyterhub/proxy.py), which is too short if several tests share two cores.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from localcluster.binaries import proxy
from localcluster.processes import Process, wait_until

TOKEN = "the-tests-own-proxy-token"


@contextmanager
def running_proxy(folder: Path, public: int, api: int, hub: str) -> Iterator[None]:
    """Run a proxy until the block ends.

    Args:
        folder: The folder of its log.
        public: The port for users.
        api: The port where *hub* sets its routes.
        hub: The hub's address; it serves the error pages.

    Raises:
        LocalClusterError: The proxy did not start; the message has the end of its log.
    """
    command: list[str | Path] = [
        proxy() / "configurable-http-proxy",
        *("--ip", "127.0.0.1", "--port", str(public)),
        *("--api-ip", "127.0.0.1", "--api-port", str(api)),
        *("--error-target", f"{hub}/hub/error"),
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
        wait_until(
            lambda: _answers(public) and _answers(api), [process], 120, "configurable-http-proxy"
        )
        yield
    finally:
        process.stop()


def _answers(port: int) -> bool:
    try:
        requests.get(f"http://127.0.0.1:{port}", timeout=5)
    except (requests.ConnectionError, requests.Timeout):
        return False
    return True

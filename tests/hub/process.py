"""A hub's process, forked from a server process that has already imported the hub's modules.

The imports take most of a hub's start; each process makes a new hub.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

ROOT = Path(__file__).parents[2]

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["tests.quick_imports", "tests.hub.imported"])


def start_hub_process(folder: Path, environment: Mapping[str, str]) -> BaseProcess:
    """Run `jupyterhub` with *folder*'s jupyterhub_config.py; it writes to hub.log there."""
    whole = {
        **os.environ,
        "PYTHONPATH": str(ROOT),  # for the servers' processes and the spawners' imports
        **environment,
    }
    process = _context.Process(target=_run, args=(folder, whole))
    process.start()
    return process


def _run(folder: Path, environment: dict[str, str]) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with (folder / "hub.log").open("ab") as log:
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
    sys.argv = ["jupyterhub", "--config", str(folder / "jupyterhub_config.py")]

    from jupyterhub.app import main
    from kubernetes_asyncio.config import kube_config

    # The module read KUBECONFIG at its import, before this hub's value was set.
    kube_config.KUBE_CONFIG_DEFAULT_LOCATION = environment.get("KUBECONFIG", "~/.kube/config")
    main()

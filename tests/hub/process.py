"""A hub's process, forked from one that has already imported what hubs need.

The imports are most of what a hub needs to start; the hub itself is made anew in each process.
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
_context.set_forkserver_preload(["tests.quick_imports", "jupyterhub.app", "gpuspawner.spawner"])


def start_hub_process(folder: Path, environment: Mapping[str, str]) -> BaseProcess:
    """Run `jupyterhub` with *folder*'s jupyterhub_config.py; it writes to hub.log there."""
    whole = {
        **os.environ,
        "PYTHONPATH": str(ROOT),  # for the servers' processes, and for what spawners import
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

    # It reads the variable when it is imported, which was before this hub had its own.
    kube_config.KUBE_CONFIG_DEFAULT_LOCATION = environment.get("KUBECONFIG", "~/.kube/config")
    main()

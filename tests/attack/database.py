"""Faults of the hub's database, while a dozen people in line are called."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import requests

from localcluster import LocalCluster, Pods, rbac
from tests.hub.configurations import t4_nodes
from tests.hub.conftest import SPAWNING
from tests.hub.lines import HOLDER, WAITING, WAITS, WITH_A_LINE, hold
from tests.hub.pods import Pods as PodsOfServers
from tests.hub.running import RunningHub, running_hub
from tests.servers import single_user
from tests.waiting import wait_for

PEOPLE = tuple(f"p{number:02}" for number in range(12))
_NAMESPACE = "faults"
_PATIENCE = 300.0


def survives(folder: Path) -> bool:
    """Let each fault meet a line, and print who has a server then; return whether all have."""
    with (
        LocalCluster(folder / "cluster", pods=Pods.RUN) as cluster,
        _small_disk(folder / "disk") as disk,
        _hub(folder / "hub", cluster, disk / "hub.sqlite") as hub,
    ):
        [node] = cluster.add_nodes(t4_nodes(1, len(PEOPLE)))
        faults = {"locked": _locked(disk)}
        if os.path.ismount(disk):
            faults["full"] = _full(disk)
        else:
            print("the disk of the database was never full: this user can't mount a small one")
        hold_gpus = partial(hold, cluster, node, len(PEOPLE))
        return all(_meets_a_line(hub, hold_gpus, *it) for it in faults.items())


def _meets_a_line(
    hub: RunningHub, hold_gpus: Callable[[], None], name: str, fault: AbstractContextManager[None]
) -> bool:
    hub.begin_test()
    hold_gpus()
    for user in PEOPLE:
        assert hub.start(user, WAITING).status_code in WAITS
    wait_for(lambda: all(f"{user} waits in line" in hub.log for user in PEOPLE))

    with fault:
        hub.pods.cluster.api.delete(HOLDER, grace=0)
        wait_for(lambda: f"is {name}" in hub.log)

    wait_for(lambda: not hub.lives or _have_ended(hub), timeout=_PATIENCE)
    ready = [user for user in PEOPLE if hub.lives and _server(hub, user).get("ready")]
    pods = {f"jupyter-{user}" for user in ready} & hub.pods.names()
    counted = hub.log.count("consecutive spawn")
    print(
        f"a database that is {name}: of {len(PEOPLE)} people who were called, {len(ready)} have a "
        f"server by what the hub says, and {len(pods)} have one; failures that the hub counted in "
        f"a row: {counted or 'none'}; the hub {'lives' if hub.lives else 'has ended'}",
        flush=True,
    )
    for user in ready:
        hub.stop(user)
    return len(pods) == len(PEOPLE) and not counted and hub.lives


def _have_ended(hub: RunningHub) -> bool:
    """Whether no start goes on; the hub ends a moment after too many have failed."""
    pending = any(_server(hub, user).get("pending") for user in PEOPLE)
    return not pending and "Aborting due to" not in hub.log


def _server(hub: RunningHub, user: str) -> dict[str, Any]:
    try:
        return hub.server(user)
    except (KeyError, requests.RequestException):
        return {"pending": "nobody knows"}


@contextmanager
def _hub(folder: Path, cluster: LocalCluster, database: Path) -> Iterator[RunningHub]:
    """Run a hub that ends after five failures in a row."""
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    environment = {"KUBECONFIG": str(rbac.hub_kubeconfig(cluster, _NAMESPACE))}
    more = f"{WITH_A_LINE}c.JupyterHub.db_url = 'sqlite:///{database}'\n"
    lines = SPAWNING.format(namespace=_NAMESPACE, server=single_user.COMMAND, more=more)
    folder.mkdir()
    pods = PodsOfServers(cluster, _NAMESPACE)
    with running_hub(folder, lines, environment=environment, pods=pods) as hub:
        hub.until_it_sees_the_cluster()
        yield hub


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    """Make a folder, with a small disk of its own if this user may mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(folder)]
    mounted = subprocess.run(mount, check=False, capture_output=True).returncode == 0
    try:
        yield folder
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def _locked(disk: Path) -> Iterator[None]:
    """Keep the hub from its database, as a backup does."""
    with closing(sqlite3.connect(disk / "hub.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def _full(disk: Path) -> Iterator[None]:
    """Let the disk have no room."""
    other = disk / "other"
    try:
        with other.open("wb", buffering=0) as written:
            while written.write(b"x" * 4096):
                pass
    except OSError:
        pass
    yield
    other.unlink()

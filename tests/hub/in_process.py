"""A JupyterHub in this process: its database, users and spawners, without its pages.

For tests that ask a thousand questions: a process and HTTP would take most of the time. The
hub's own code makes the spawners, and their API server is a real one.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import kubernetes_asyncio.config.kube_config
import pytest
from jupyterhub import orm, roles
from jupyterhub.app import JupyterHub
from jupyterhub.proxy import Proxy
from jupyterhub.user import User
from kubernetes_asyncio.client import Configuration
from kubespawner import KubeSpawner
from kubespawner.clients import load_config
from traitlets.config import Config

from gpuspawner import runtime


class NoProxy(Proxy):  # type: ignore[misc]
    """A proxy without routes: no requests come from outside."""

    should_start = False

    async def add_route(self, routespec: str, target: str, data: Any) -> None:
        pass

    async def delete_route(self, routespec: str) -> None:
        pass

    async def get_all_routes(self) -> dict[str, Any]:
        return {}


class HubInProcess:
    """A hub in this process, and its users."""

    def __init__(self, app: JupyterHub) -> None:
        self.app = app

    def user(self, name: str) -> User:
        """Return the user of this name, made with the hub's default roles if needed."""
        found = orm.User.find(self.app.db, name)
        if found is None:
            found = orm.User(name=name)
            self.app.db.add(found)
            self.app.db.commit()
            roles.assign_default_roles(self.app.db, found)
        return self.app.users.get(found.id) or self.app.users.add(found)


@asynccontextmanager
async def hub_in_process(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    kubeconfig: Path,
    spawner_class: type[KubeSpawner],
    c: Config,
) -> AsyncIterator[HubInProcess]:
    """Make a hub with *spawner_class* on the cluster of *kubeconfig*."""
    location = kubernetes_asyncio.config.kube_config
    monkeypatch.setattr(location, "KUBE_CONFIG_DEFAULT_LOCATION", str(kubeconfig))
    monkeypatch.setattr(runtime, "_runtime", None)
    monkeypatch.chdir(folder)
    load_config.cache_clear()
    c.JupyterHub.spawner_class = spawner_class
    c.JupyterHub.proxy_class = NoProxy
    c.JupyterHub.db_url = "sqlite:///:memory:"
    c.JupyterHub.cookie_secret = os.urandom(32)
    c.JupyterHub.authenticator_class = "dummy"
    c.JupyterHub.log_level = "CRITICAL"
    c.Authenticator.allow_all = True
    app = JupyterHub(config=c)
    ours = logging.getLogger("gpuspawner")
    parent, level = ours.parent, ours.level
    try:
        await app.initialize([])
        yield HubInProcess(app)
    finally:
        if runtime._runtime is not None:
            await runtime._runtime.view.stop()
        for reflector in KubeSpawner.reflectors.values():
            await reflector.stop()
        KubeSpawner.reflectors.clear()
        load_config.cache_clear()
        Configuration.set_default(None)
        # The runtime has made the hub's log the parent; other tests expect our lines at the root.
        ours.parent = parent
        ours.setLevel(level)
        app.db.close()

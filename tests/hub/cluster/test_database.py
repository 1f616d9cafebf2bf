"""A fault of the hub's database ends nobody's start, and nobody's wait in line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from localcluster import LocalCluster
from tests.fixtures.cluster import AddNodes
from tests.hub import postgresql
from tests.hub.configurations import t4_nodes
from tests.hub.conftest import StartGPUHub
from tests.hub.lines import HOLDER, WAITING, WAITS, WITH_A_LINE, hold
from tests.hub.running import RunningHub
from tests.waiting import wait_for

PEOPLE = ("ann", "bob", "cam")


@pytest.fixture
def full(cluster: LocalCluster, add_nodes: AddNodes) -> LocalCluster:
    """A cluster whose GPUs, one for each, a pod of somebody else has."""
    [node] = add_nodes(t4_nodes(1, len(PEOPLE)))
    hold(cluster, node, len(PEOPLE))
    return cluster


@contextmanager
def locked(hub: RunningHub) -> Iterator[None]:
    """Keep the hub from its database, as a backup does."""
    with closing(sqlite3.connect(hub.database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@pytest.mark.each_hub
def test_who_is_called_while_the_database_is_locked_starts_afterwards(
    full: LocalCluster, start_gpu_hub: StartGPUHub
) -> None:
    with start_gpu_hub(WITH_A_LINE) as hub:
        all_wait(hub)

        with locked(hub):
            full.api.delete(HOLDER, grace=0)
            wait_for(lambda: "database is locked" in hub.log)

        all_start(hub)


@pytest.mark.nightly("it needs PostgreSQL, which nobody else here does")
def test_who_is_called_while_postgresql_is_restarted_starts_afterwards(
    full: LocalCluster, start_gpu_hub: StartGPUHub
) -> None:
    programs = postgresql.programs()
    if programs is None:
        pytest.skip("PostgreSQL isn't installed; `make nightly` installs it")
    with (
        postgresql.running(programs) as server,
        start_gpu_hub(f"{WITH_A_LINE}c.JupyterHub.db_url = {server.url!r}\n") as hub,
    ):
        all_wait(hub)

        server.stop()
        full.api.delete(HOLDER, grace=0)
        wait_for(lambda: "psycopg2.OperationalError" in hub.log or "The hub's database" in hub.log)
        server.start()

        all_start(hub)


def all_wait(hub: RunningHub) -> None:
    for user in PEOPLE:
        assert hub.start(user, WAITING).status_code in WAITS
    wait_for(lambda: all(f"{user} waits in line" in hub.log for user in PEOPLE))


def all_start(hub: RunningHub) -> None:
    """Check that everybody's server comes up, and that nothing else has happened."""
    expected = [f"jupyter-{user}" for user in PEOPLE]
    wait_for(lambda: sorted(hub.pods.names()) == expected or "Unhandled error" in hub.log)
    for user in PEOPLE:
        hub.until_ready(user)
    assert sorted(hub.pods.names()) == expected
    assert hub.log.count("The hub's database fails") == 1
    assert "consecutive spawn" not in hub.log

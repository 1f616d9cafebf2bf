"""Which servers run, as the hub's database says."""

from __future__ import annotations

from datetime import datetime

import pytest

from gpuspawner.compat import stored_servers
from gpuspawner.compat.stored_servers import RunningServer, running_servers
from tests.unit.makers.hub_database import HubDatabase


def test_only_servers_that_run_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_servers, "_AT_ONCE", 2)
    hub = HubDatabase()
    ann, bob = hub.user("ann"), hub.user("bob")
    used = datetime(2026, 11, 27, 6, 30)  # noqa: DTZ001, as the hub stores it
    for name in ("", "thesis"):
        hub.server(ann, name).last_activity = used
    hub.server(ann, "stopped", runs=False)
    hub.server(bob)
    hub.session.commit()

    found = list(running_servers(hub.session))

    assert found == [
        [RunningServer(ann.id, "ann", "", used), RunningServer(ann.id, "ann", "thesis", used)],
        [RunningServer(bob.id, "bob", "", None)],
    ]

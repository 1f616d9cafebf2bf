"""What a hub counts of its servers, by an API server that a test scripts."""

from __future__ import annotations

from gpuspawner.cluster.wakeups import Contact
from gpuspawner.policies.accounts import Accounts
from gpuspawner.policies.charges import Meter
from gpuspawner.scheduling import Rules
from tests.unit.makers.scripted import ScriptedServer
from tests.unit.makers.worlds import no_promises

METER = Meter(Rules.of_version("1.36"))


def accounts_of(
    server: ScriptedServer | None = None,
    namespace: str = "jhub",
    meter: Meter = METER,
    contact: Contact | None = None,
) -> Accounts:
    """Make the accounts of a hub that has promised nothing yet; without a server, none is asked."""
    load = (server or ScriptedServer()).configuration
    return Accounts(load, namespace, lambda: meter, contact or Contact(), no_promises())

"""What policies leave to a server's owner, as the form shows it."""

from collections.abc import Sequence

from gpuspawner import messages
from gpuspawner.gates.host import Host
from gpuspawner.language import gettext as _
from gpuspawner.launch import failures
from gpuspawner.launch.announcements import told_on_form
from gpuspawner.policies.entitlement import Entitlement
from gpuspawner.runtime import Runtime
from gpuspawner.web.form.addresses import stop
from gpuspawner.web.form.view_model import LeftByPolicies, OwnServer, WithheldCard


def usage(spawner: Host, runtime: Runtime, entitlement: Entitlement) -> LeftByPolicies | None:
    """Return what is left to the owner, with the owner's own servers; None without limits."""
    allowance = entitlement.allowance
    failed, ended = failures.told_on_form(spawner, runtime), told_on_form(spawner)
    withheld = tuple(
        WithheldCard(it.display_name, it.description, policy.explanation)
        for it, policy in entitlement.withheld
    )
    said: Sequence[str] = ()
    servers: tuple[OwnServer, ...] = ()
    if allowance is not None:
        said = messages.allowance_lines(allowance, runtime.display_names)
        servers = tuple(_own(spawner, name) for name in allowance.servers)
    lines = tuple(filter(None, [failed, ended, *said]))
    return LeftByPolicies(lines, servers, withheld) if lines or withheld else None


def _own(spawner: Host, name: str) -> OwnServer:
    """Describe a server; a user can't stop one that starts or stops, or that the hub lost."""
    running = spawner.user.spawners.get(name)
    can_stop = running is not None and running.ready
    shown = name or _("your default server")
    return OwnServer(shown, stop(spawner, name) if can_stop else "")

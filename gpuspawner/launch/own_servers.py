"""What policies leave to a server's owner, as the form shows it."""

from gpuspawner.form.addresses import stop
from gpuspawner.form.view_model import LeftByPolicies, OwnServer, WithheldCard
from gpuspawner.language import gettext as _
from gpuspawner.launch import failures
from gpuspawner.launch.announcements import told_on_form
from gpuspawner.runtime import Runtime
from gpuspawner.start.host import Host
from gpuspawner.start.policing import Entitlement


def usage(spawner: Host, runtime: Runtime, entitlement: Entitlement) -> LeftByPolicies | None:
    """Return what is left to the owner, with the owner's own servers; None without limits."""
    failed, ended = failures.told_on_form(spawner, runtime), told_on_form(spawner)
    withheld = tuple(
        WithheldCard(it.display_name, it.description, explanation)
        for it, explanation in entitlement.withheld
    )
    servers = tuple(_own(spawner, name) for name in entitlement.servers)
    lines = tuple(filter(None, [failed, ended, *entitlement.lines]))
    return LeftByPolicies(lines, servers, withheld) if lines or withheld else None


def _own(spawner: Host, name: str) -> OwnServer:
    """Describe a server; a user can't stop one that starts or stops, or that the hub lost."""
    running = spawner.user.spawners.get(name)
    can_stop = running is not None and running.ready
    shown = name or _("your default server")
    return OwnServer(shown, stop(spawner, name) if can_stop else "")

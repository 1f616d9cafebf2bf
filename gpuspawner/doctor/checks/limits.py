"""Whether the hub's time-outs and limits defeat each other."""

from collections.abc import Iterator

from gpuspawner.compat.hub_limits import (
    Conflict,
    LateProgress,
    Limits,
    LongRetries,
    ShortPreparing,
    ShortRequest,
    conflicts,
)
from gpuspawner.doctor.findings import Finding, warning
from gpuspawner.doctor.hub import Hub
from gpuspawner.messages import explain_conflict
from gpuspawner.runtime import DRY_RUN_PATIENCE


def check(hub: Hub) -> Iterator[Finding]:
    """Check the limits of JupyterHub and KubeSpawner."""
    tornado_settings = hub.config.JupyterHub.get("tornado_settings")
    limits = Limits.of(hub.spawner, tornado_settings, DRY_RUN_PATIENCE)
    yield from map(_finding, conflicts(limits))


def _finding(conflict: Conflict) -> Finding:
    text = f"{explain_conflict(conflict)}."
    match conflict:
        case ShortPreparing():
            return warning("limit-preparing", text, "Set it to at least 600.")
        case LateProgress():
            advice = "Set c.JupyterHub.tornado_settings = {'slow_spawn_timeout': 0}."
            return warning("limit-progress", text, advice)
        case LongRetries():
            advice = "Set it to a small part of that time."
            return warning("limit-retries", text, advice)
        case ShortRequest(admission=admission):
            return warning("limit-request", text, f"Set it to more than {admission:g}.")

"""Rules that depend on the version of kube-scheduler, not on that of the API server."""

import re
from collections.abc import Iterable

import msgspec

DEFAULT_SCHEDULER = "default-scheduler"

_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4})?.*|[+-].*)?", re.DOTALL)


def minor_version(version: str) -> int | None:
    """Return the minor version of a text such as "v1.36.2"; None if it isn't such a version."""
    release = _release(version)
    return release and release[0]


def _release(version: str) -> tuple[int, int] | None:
    """Return the minor version and the patch release; a text without the latter means the first."""
    match = _VERSION.fullmatch(version.strip())
    return (int(match[2]), int(match[3] or 0)) if match and match[1] == "1" else None


class Rules(msgspec.Struct, frozen=True):
    """Rules that differ between versions of kube-scheduler."""

    minor: int
    """The minor version, of 1.x. Most rules depend on nothing else."""
    sidecar_ports: bool
    """Whether host ports of sidecars count (since 1.33.6)."""
    missing_drivers_by_gate: bool
    """Whether the gate VolumeLimitScaling of the scheduler, which nobody sees, is off by default
    (before 1.37)."""

    schedulers: frozenset[str] = frozenset({DEFAULT_SCHEDULER})
    """Names of schedulers that use the default filters."""

    @classmethod
    def of_version(cls, version: str, schedulers: Iterable[str] = ()) -> "Rules":
        """Return the rules of a kube-scheduler version.

        Args:
            version: such as "v1.36.2". If it can't be parsed, the newest rules apply.
            schedulers: further schedulers with the default filters, such as the user-scheduler of
                Zero to JupyterHub, which changes only the scores.
        """
        minor, patch = _release(version) or (NEWEST_MINOR, 0)
        return cls(
            minor=minor,
            sidecar_ports=(minor, patch) >= (33, 6),
            missing_drivers_by_gate=minor < 37,
            schedulers=frozenset({DEFAULT_SCHEDULER, *schedulers}),
        )


NEWEST_MINOR = 37
"""The newest minor version that this module implements."""

DEFAULT_RULES = Rules.of_version("v1.36")
"""The rules of the version from which the message texts are taken."""

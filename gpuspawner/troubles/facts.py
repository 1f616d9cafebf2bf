"""What happens to servers, as facts.

The places that know a fact note it once, by `Runtime.note`. A hub without ``GPUSpawner.gpu_use``
keeps none; `gpuspawner.use` keeps them, and is all that reads them.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

DAYS_KEPT = 30
"""For how many days a hub keeps facts in files, unless ``GPUSpawner.gpu_use`` says otherwise."""


class Happened(StrEnum):
    """What has happened to a server."""

    GRANTED = "granted"
    """A start may begin: it has passed the gates before its pod is made."""
    REFUSED = "refused"
    """A start, or a form, has been refused."""
    OVERRULED = "overruled"
    """A start would have been refused, but ``GPUSpawner.preflight`` is to warn only."""
    JOINED = "joined"
    """A start waits in line."""
    CALLED = "called"
    """It is the turn of a start that has waited in line."""
    LEFT = "left"
    """Its owner has left the line."""
    STARTED = "started"
    """A server listens; without phases, a restarted hub has found it running."""
    IDLE = "idle"
    """The GPUs of a server haven't been used for as long as a policy says."""
    WARNED = "warned"
    """Its owner has been warned that it will be stopped."""
    KEPT = "kept"
    """Its owner keeps it for a while."""
    USED = "used"
    """Its GPUs are used again, so that its owner may keep it as often as at first."""
    ENDED = "ended"
    """A granted start has failed, or a server has stopped."""


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that has happened to a server.

    Attributes:
        at: When, in seconds since 1970.
        user, server: The names of the owner and of the server; "" is the default server.
        reason: Why it was refused or has ended, as a short fixed slug.
        accelerator: The key of the accelerator; "" without one.
        seconds: How long it has waited (called), run (ended) or been unused (idle), or for how long
            it stays (warned, kept).
        phases: How many seconds each phase of the start took.
    """

    happened: Happened
    at: float
    user: str
    server: str = ""
    reason: str = ""
    accelerator: str = ""
    gpus: int = 0
    seconds: float = 0.0
    node: str = ""
    phases: Mapping[str, float] = {}

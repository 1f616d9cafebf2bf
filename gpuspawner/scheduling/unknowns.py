"""The reasons why a verdict is unknown."""

from dataclasses import dataclass
from enum import StrEnum


class Why(StrEnum):
    """Why the known objects don't lead to a verdict."""

    OTHER_SCHEDULER = "another scheduler places the pod"
    GATED = "the pod waits for scheduling gates"
    GROUPED = "the pod is scheduled with a group"
    DEVICE_CLAIM = "device claims decide"
    NODE_FEATURE = "features that nodes declare decide"
    NOT_KNOWN = "objects of a kind are not known"
    ODD_OBJECT = "an object could not be understood"
    ODD_POD = "the pod itself could not be understood"
    NEW_VOLUME = "a volume is still to be made, and where is not known"


@dataclass(frozen=True, slots=True)
class Unknown:
    """One cause of uncertainty."""

    why: Why
    detail: str
    """The scheduler, gate, claim, resource, kind or object that it concerns."""
    may_admit: bool = False
    """Whether a refusal could become a fit."""
    may_refuse: bool = True
    """Whether a fit could become a refusal."""

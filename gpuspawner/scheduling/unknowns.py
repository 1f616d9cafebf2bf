"""The reasons why a verdict is unknown."""

from dataclasses import dataclass
from enum import StrEnum


class Why(StrEnum):
    """Why the known objects don't lead to a verdict."""

    OTHER_SCHEDULER = "another scheduler places the pod"
    GATED = "the pod waits for scheduling gates"
    GROUPED = "the pod is scheduled with a group"
    DEVICE_CLAIM = "device claims decide about the pod"
    NODE_FEATURE = "features that nodes declare decide about the pod"
    NOT_KNOWN = "not all objects of a kind are known"
    UNDECODABLE_OBJECT = "an object can't be decoded"
    UNDECODABLE_POD = "the pod itself can't be decoded"
    NEW_VOLUME = "a volume has yet to be created, and nobody knows where"


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

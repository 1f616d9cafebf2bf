"""Why the API server rejects an object, as facts; `gpuspawner.messages` makes the sentences.

Units: millicores for CPU, bytes for memory, disk and storage, else whole numbers. Resources have
the names that the rule uses: ``requests.nvidia.com/gpu``, ``limits.memory``, ``pods``.
"""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Use:
    """The use of one resource of a quota.

    Attributes:
        resource: As the quota names it.
        asked: How much the object would use.
        used: How much the namespace uses.
        limit: How much the namespace may use.
    """

    resource: str
    asked: int
    used: int
    limit: int


@dataclass(frozen=True, slots=True)
class OverQuota:
    """A ResourceQuota leaves too little.

    Attributes:
        uses: The resources that are short; never empty.
    """

    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class QuotaDemands:
    """A ResourceQuota requires the object to specify resources, and it doesn't.

    Attributes:
        resources: The resources; never empty.
    """

    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuotaUncounted:
    """A ResourceQuota is so new that its use has not been counted yet."""


class Bound(StrEnum):
    """An end of a LimitRange."""

    MAXIMUM = "maximum"
    MINIMUM = "minimum"


@dataclass(frozen=True, slots=True)
class Breach:
    """One bound that an object violates.

    Attributes:
        resource: ``memory``, ``cpu``, ``nvidia.com/gpu``, ``storage``.
        bound: Which end.
        limit: The bound.
        asked: How much the object asks for; None if it doesn't say.
    """

    resource: str
    bound: Bound
    limit: int
    asked: int | None


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """A LimitRange doesn't allow so much or so little.

    Attributes:
        breaches: The bounds that the object violates; never empty.
    """

    breaches: tuple[Breach, ...]


@dataclass(frozen=True, slots=True)
class Insecure:
    """The pod violates the Pod Security level of its namespace.

    Attributes:
        level: ``baseline`` or ``restricted``.
    """

    level: str


@dataclass(frozen=True, slots=True)
class Missing:
    """An object that this one refers to doesn't exist.

    Attributes:
        kind: ``RuntimeClass``, ``PriorityClass``, ``ServiceAccount`` or ``Namespace``.
        name: Its name.
    """

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Denied:
    """A webhook or a ValidatingAdmissionPolicy denied the object.

    Attributes:
        said: The reason that it gave; may be empty. Short and printable.
    """

    said: str


@dataclass(frozen=True, slots=True)
class WebhookFailed:
    """A required webhook doesn't answer.

    Attributes:
        name: Its name.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Any other cause: an invalid field, a right that the hub lacks, an unknown plugin."""


Cause = (
    OverQuota
    | QuotaDemands
    | QuotaUncounted
    | OutOfRange
    | Insecure
    | Missing
    | Denied
    | WebhookFailed
    | Unexplained
)


class Of(StrEnum):
    """The rejected object."""

    POD = "pod"
    HOME = "home"
    """The PersistentVolumeClaim of a user's home directory."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """The API server rejected an object.

    Attributes:
        of: The object.
        cause: Why.
        text: What the API server said, for administrators: one printable line, cut if very long.
    """

    of: Of
    cause: Cause
    text: str

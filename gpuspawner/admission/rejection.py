"""Why the API server does not take an object, as frozen facts; sentences are made elsewhere.

Units: millicores for CPU, bytes for memory, disk and storage, else whole numbers. Resources are
named as the rule names them: ``requests.nvidia.com/gpu``, ``limits.memory``, ``pods``.
"""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Use:
    """One resource of a quota.

    Attributes:
        resource: As the quota names it.
        asked: What the object would take.
        used: What is taken in the namespace.
        limit: What may be taken.
    """

    resource: str
    asked: int
    used: int
    limit: int


@dataclass(frozen=True, slots=True)
class OverQuota:
    """A ResourceQuota leaves too little.

    Attributes:
        uses: The resources of which there is too little; never empty.
    """

    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class QuotaDemands:
    """A ResourceQuota counts resources of which the object does not say how much it takes.

    Attributes:
        resources: Which they are; never empty.
    """

    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuotaUncounted:
    """A ResourceQuota is so new that nobody has counted yet what is taken."""


class Bound(StrEnum):
    """Which end of a LimitRange."""

    MAXIMUM = "maximum"
    MINIMUM = "minimum"


@dataclass(frozen=True, slots=True)
class Breach:
    """One bound that an object does not keep.

    Attributes:
        resource: ``memory``, ``cpu``, ``nvidia.com/gpu``, ``storage``.
        bound: Which end.
        limit: The bound.
        asked: What was asked; None where nothing was said.
    """

    resource: str
    bound: Bound
    limit: int
    asked: int | None


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """A LimitRange does not allow so much or so little.

    Attributes:
        breaches: What it is about; never empty.
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
    """Something that the object names does not exist.

    Attributes:
        kind: ``RuntimeClass``, ``PriorityClass``, ``ServiceAccount`` or ``Namespace``.
        name: Its name.
    """

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Denied:
    """A webhook or a ValidatingAdmissionPolicy said no.

    Attributes:
        said: What it gave as its reason; may be empty. Short and printable.
    """

    said: str


@dataclass(frozen=True, slots=True)
class WebhookFailed:
    """A webhook that has to be asked does not answer.

    Attributes:
        name: Its name.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Whatever else: an invalid field, a right that the hub lacks, a plugin that is not known."""


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
    """What was not taken."""

    POD = "pod"
    HOME = "home"
    """The PersistentVolumeClaim of a person's home directory."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """The API server's no.

    Attributes:
        of: What it did not take.
        cause: Why.
        text: What it said, for administrators: printable, one line, cut where it is very long.
    """

    of: Of
    cause: Cause
    text: str

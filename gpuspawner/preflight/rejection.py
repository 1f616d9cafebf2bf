"""Why the API server rejects an object, as facts; `gpuspawner.messages` makes the sentences.

Units: millicores for CPU, bytes for memory, disk and storage, else whole numbers. Resources have
the names that the rule uses: ``requests.nvidia.com/gpu``, ``limits.memory``, ``pods``.
"""

from enum import StrEnum

import msgspec

_IN_BYTES = ("memory", "storage", "ephemeral-storage")


class Use(msgspec.Struct, frozen=True):
    """The use of one resource of a quota, as the quota names it.

    Attributes:
        asked: How much the object would use.
        used: How much the namespace uses.
        limit: How much the namespace may use.
    """

    resource: str
    asked: int
    used: int
    limit: int


class OverQuota(msgspec.Struct, frozen=True):
    """A ResourceQuota leaves too little of these resources, at least one."""

    uses: tuple[Use, ...]


class QuotaDemands(msgspec.Struct, frozen=True):
    """A ResourceQuota requires the object to specify these resources, at least one."""

    resources: tuple[str, ...]


class QuotaUncounted(msgspec.Struct, frozen=True):
    """A ResourceQuota is so new that its use has not been counted yet."""


class Bound(StrEnum):
    """An end of a LimitRange."""

    MAXIMUM = "maximum"
    MINIMUM = "minimum"


class Breach(msgspec.Struct, frozen=True):
    """One bound of a LimitRange that an object violates.

    `resource` is ``memory``, ``cpu``, ``nvidia.com/gpu`` or ``storage``; `asked` is None if the
    object doesn't say how much it asks for.
    """

    resource: str
    bound: Bound
    limit: int
    asked: int | None


class OutOfRange(msgspec.Struct, frozen=True):
    """A LimitRange doesn't allow so much or so little; at least one breach."""

    breaches: tuple[Breach, ...]


class Insecure(msgspec.Struct, frozen=True):
    """The pod violates its namespace's Pod Security level, ``baseline`` or ``restricted``."""

    level: str


class Missing(msgspec.Struct, frozen=True):
    """A RuntimeClass, PriorityClass, ServiceAccount or Namespace of this name doesn't exist."""

    kind: str
    name: str


class Denied(msgspec.Struct, frozen=True):
    """A webhook or a ValidatingAdmissionPolicy denied the object.

    `said` is the reason that it gave: short, printable, perhaps empty.
    """

    said: str


class WebhookFailed(msgspec.Struct, frozen=True):
    """A required webhook of this name doesn't answer."""

    name: str


class Unexplained(msgspec.Struct, frozen=True):
    """Any other cause: an invalid field, a right that the hub lacks, an unknown plugin."""


RejectionCause = (
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


class Rejection(msgspec.Struct, frozen=True):
    """The API server rejected an object.

    `text` is what it said, for administrators: one printable line, cut if very long.
    """

    of: Of
    cause: RejectionCause
    text: str


def unit_of(resource: str) -> str:
    """Return the unit of a resource as any rule names it; "" for one that is merely counted.

    ``limits.memory`` has the unit ``memory``, and
    ``gold.storageclass.storage.k8s.io/requests.storage`` has the unit ``storage``. The others are
    ``cpu`` and ``ephemeral-storage``.
    """
    name = resource.rpartition("/")[2] if "storageclass." in resource else resource
    name = name.removeprefix("requests.").removeprefix("limits.")
    return name if name == "cpu" or name in _IN_BYTES else ""

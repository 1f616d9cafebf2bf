"""Why the API server rejects an object, as facts; `gpuspawner.messages` makes the sentences.

Units: millicores for CPU, bytes for memory, disk and storage, else whole numbers. Resources have
the names that the rule uses: ``requests.nvidia.com/gpu``, ``limits.memory``, ``pods``.

`read` parses the API server's answer. The texts are those of Kubernetes 1.36.2, seen on its API
server: quota (apiserver/pkg/admission/plugin/resourcequota/controller.go), LimitRange
(plugin/pkg/admission/limitranger/admission.go), RuntimeClass, Priority, PodSecurity, webhooks and
policies. The texts of a missing ServiceAccount and of a quota that isn't counted yet come from the
source (plugin/pkg/admission/serviceaccount/admission.go, and the first). An unknown text is a
rejection without figures.
"""

import json
import re
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from gpuspawner.kube.quantity import QuantityError, millis_of, parse_nanos, whole_of
from gpuspawner.kube.quoting import one_line

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

    @property
    def may_be_freed(self) -> bool:
        """Whether there is room as soon as others use less."""
        return all(use.asked <= use.limit for use in self.uses)


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


# In characters. A webhook may send a whole page; PodSecurity names every container.
_LONGEST_TEXT = 2000

_WEBHOOK = re.compile(
    r'admission webhook "[^"]*" denied the request(?: without explanation|: (.*))'
)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request: (.*)")
_NO_DRY_RUN = re.compile(r'admission webhook "[^"]*" does not support dry run')
_WEBHOOK_FAILED = re.compile(r'failed calling webhook "([^"]*)"')
_FORBIDDEN = re.compile(r'\S+(?: "[^"]*")? is forbidden: (.*)')
_QUOTA = re.compile(r"exceeded quota: \S+, requested: (\S+), used: (\S+), limited: (\S+)")
_QUOTA_DEMANDS = re.compile(r"failed quota: \S+: must specify (.+)")
_DEMANDED = re.compile(r"(\S+) for: ")
_QUOTA_UNCOUNTED = re.compile(r"status unknown for quota: ")
_BREACH = re.compile(
    r"(maximum|minimum) (\S+) usage per \w+ is "
    r"(?:([^\s,\]]+), but (?:request|limit) is ([^\s,\]]+)|([^\s,\]]+)\. No \w+ is specified)"
)
_INSECURE = re.compile(r'violates PodSecurity "(\w+)[:"]')
_MISSING = (
    ("RuntimeClass", re.compile(r'pod rejected: RuntimeClass "([^"]*)" not found')),
    ("PriorityClass", re.compile(r"no PriorityClass with name (\S+) was found")),
    ("ServiceAccount", re.compile(r'error looking up service account \S+: .* "([^"]*)" not found')),
)
_NAMESPACE = re.compile(r'namespaces "([^"]*)" not found')
# The client is unknown, a time-out or a conflict, or the server is too busy.
_NOT_ABOUT_THE_OBJECT = {401, 408, 409, 429}


def read(status: int, body: object, of: Of) -> Rejection | None:
    """Parse an answer that isn't the created object.

    `body` is the ``Status`` object, its JSON, or anything else: it isn't trusted.

    Returns:
        The rejection; None if the answer says nothing about the object: the API server or its etcd
        has a fault, is too busy, doesn't know the client, or can't do a dry run.
    """
    text = message(body)
    # A webhook chooses the status of its answer, and its text may look like any other.
    if denied := _WEBHOOK.match(text):
        return Rejection(of, Denied(one_line(denied[1] or "")), text)
    if _NO_DRY_RUN.fullmatch(text):
        return None
    if status >= 500:
        failed = _WEBHOOK_FAILED.search(text)
        return Rejection(of, WebhookFailed(one_line(failed[1], 100)), text) if failed else None
    if status < 400 or status in _NOT_ABOUT_THE_OBJECT:
        return None
    return Rejection(of, _cause(text), text)


def message(body: object) -> str:
    """Return the message in a ``Status``, or in anything else; may be empty."""
    if isinstance(body, bytes):
        return message(body.decode(errors="replace"))
    if isinstance(body, str):
        return _message_of_text(body)
    said = body.get("message") if isinstance(body, Mapping) else None
    return one_line(said, _LONGEST_TEXT) if isinstance(said, str) else ""


def _message_of_text(text: str) -> str:
    try:
        status = json.loads(text)
    except (ValueError, RecursionError):
        status = None
    return message(status) if isinstance(status, Mapping) else one_line(text, _LONGEST_TEXT)


def _cause(text: str) -> RejectionCause:
    if namespace := _NAMESPACE.fullmatch(text):
        return Missing("Namespace", namespace[1])
    forbidden = _FORBIDDEN.match(text)
    return _forbidden(forbidden[1]) if forbidden else Unexplained()


def _forbidden(said: str) -> RejectionCause:
    if denied := _POLICY.match(said):
        return Denied(one_line(denied[1]))
    if insecure := _INSECURE.match(said):
        return Insecure(insecure[1])
    for kind, pattern in _MISSING:
        if missing := pattern.match(said):
            return Missing(kind, missing[1])
    try:
        return _quota(said) or _range(said) or Unexplained()
    except QuantityError:
        return Unexplained()


def _quota(said: str) -> RejectionCause | None:
    if exceeded := _QUOTA.match(said):
        asked, used, limit = (_amounts(group) for group in exceeded.groups())
        common = [name for name in asked if name in used and name in limit]
        uses = tuple(Use(name, asked[name], used[name], limit[name]) for name in common)
        return OverQuota(uses) if uses else None
    if demands := _QUOTA_DEMANDS.match(said):
        resources = tuple(_DEMANDED.findall(demands[1]))
        return QuotaDemands(resources) if resources else None
    return QuotaUncounted() if _QUOTA_UNCOUNTED.match(said) else None


def _amounts(text: str) -> dict[str, int]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    return {name: _amount(name, quantity) for name, _, quantity in pairs}


def _amount(resource: str, quantity: str) -> int:
    nanos = parse_nanos(quantity)
    return millis_of(nanos) if unit_of(resource) == "cpu" else whole_of(nanos)


def _range(said: str) -> RejectionCause | None:
    breaches = tuple(
        Breach(
            resource,
            Bound(bound),
            _amount(resource, limit or lone),
            _amount(resource, asked) if asked else None,
        )
        for bound, resource, limit, asked, lone in _BREACH.findall(said)
    )
    return OutOfRange(breaches) if breaches else None

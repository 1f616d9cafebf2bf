"""Decodes the kinds of objects that decide where a pod can run, from JSON or plain dicts.

Unknown fields are skipped, so that newer API versions work. An object that can't be decoded
becomes an `Undecodable`, never an exception.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec

from .autoscaling import ClusterAutoscaler, ConfigMap, Event, MachineAutoscaler, NodeClaim, NodePool
from .kueue import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
from .nodes import DeviceClass, Namespace, Node, PriorityClass
from .pods import Pod
from .quoting import one_line
from .servers import ServerPod
from .storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)

Manifest = Mapping[str, Any]
"""A plain object with the API's field names (camelCase), not decoded yet."""

KubeObject = (
    Node
    | Pod
    | Namespace
    | PersistentVolumeClaim
    | PersistentVolume
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
    | DeviceClass
    | PriorityClass
)

AutoscalerObject = NodePool | NodeClaim | ClusterAutoscaler | MachineAutoscaler | ConfigMap | Event
"""An object that tells of nodes to come."""

QueueObject = LocalQueue | ClusterQueue | Cohort | ResourceFlavor | Workload
"""An object of Kueue's."""

AnyObject = KubeObject | AutoscalerObject | QueueObject | ServerPod

_T = TypeVar("_T")
_N = TypeVar("_N", bound=AnyObject)

KINDS: dict[str, type[KubeObject]] = {type_.__name__: type_ for type_ in get_args(KubeObject)}
"""The kinds that decide where a pod can run, by their names in the API."""

READ: dict[str, type[AnyObject]] = {type_.__name__: type_ for type_ in get_args(AnyObject)}
"""All kinds that can be decoded."""

CLUSTER_SCOPED = frozenset(KINDS) - {"Pod", "PersistentVolumeClaim", "CSIStorageCapacity"}


class Undecodable(msgspec.Struct, gc=False, frozen=True):
    """An object that can't be decoded. Every verdict that depends on it is unknown."""

    kind: str
    namespace: str
    name: str
    node: str | None
    """The node of a pod: "" if it has none, None if that is unreadable too."""
    problem: str
    repels: bool = True
    """Whether it may exclude other pods from other nodes too (a pod with affinity)."""

    @property
    def text(self) -> str:
        """Its kind, namespace and name as far as they can be read, and the problem; one line."""
        name = "/".join(one_line(it, 253) for it in (self.namespace, self.name or "?") if it)
        return f"{self.kind} {name}: {one_line(self.problem, 200)}"


UNDECODABLE = (msgspec.MsgspecError, ValueError, TypeError, RecursionError)
"""All exceptions that decoding and converting may raise."""

_DECODERS: dict[str, msgspec.json.Decoder[AnyObject]] = {
    kind: msgspec.json.Decoder(type_) for kind, type_ in READ.items()
}
# These match the API server's output. No string can contain the end marker: the server escapes
# quotation marks inside strings, and no letter follows the quotation mark that ends a string.
_MANAGED_FIELDS = b',"managedFields":['
_THEIR_END = re.compile(rb'\]\},"[a-z]')


def decode_deep(decoder: msgspec.json.Decoder[_T], encoded: bytes | bytearray) -> _T:
    """Decode objects even if their `managedFields`, which anyone can write, are nested too deeply.

    Removing these takes about a millisecond per megabyte.
    """
    try:
        return decoder.decode(encoded)
    except RecursionError:
        return decoder.decode(_without_managed_fields(encoded))


def _without_managed_fields(encoded: bytes | bytearray) -> bytes:
    kept, at = [], 0
    while (begin := encoded.find(_MANAGED_FIELDS, at)) >= 0:
        end = _THEIR_END.search(encoded, begin + len(_MANAGED_FIELDS) - 1)
        if end is None:
            break
        kept.append(encoded[at:begin])
        at = end.start() + 1
    return b"".join((*kept, encoded[at:]))


def decode(kind: str, raw: bytes | bytearray | memoryview | msgspec.Raw) -> AnyObject | Undecodable:
    """Decode one object's JSON; return an `Undecodable` if it can't be read. Never raises."""
    try:
        return _named(kind, _DECODERS[kind].decode(raw))
    except UNDECODABLE as error:
        problem = str(error)
    try:
        plain: object = msgspec.json.decode(raw)
    except UNDECODABLE:
        plain = None
    return _undecodable(kind, plain, problem)


def manifest_of(thing: AnyObject) -> Manifest:
    """Return what we read of an object, as the API writes it: with lists, not with tuples."""
    plain: Manifest = msgspec.json.decode(msgspec.json.encode(thing))
    return plain


def convert(kind: str, plain: object) -> KubeObject | Undecodable:
    """Convert a plain API dict; return an `Undecodable` if it can't be read. Never raises."""
    try:
        return _named(kind, strict_convert(plain, KINDS[kind]))
    except UNDECODABLE as error:
        return _undecodable(kind, plain, str(error))


def strict_convert(plain: object, type_: type[_T]) -> _T:
    """Convert a plain object to a type.

    Raises:
        UNDECODABLE: it has another shape, or text with lone surrogates, which JSON can't hold.
    """
    parsed = msgspec.convert(plain, type_)
    msgspec.json.encode(parsed)
    return parsed


def _named(kind: str, parsed: _N) -> _N:
    if not parsed.metadata.name:
        raise ValueError(f"a {kind} without metadata.name")
    return parsed


def _undecodable(kind: str, plain: object, problem: str) -> Undecodable:
    return Undecodable(
        kind=kind,
        namespace=_text(plain, "metadata", "namespace") or "",
        name=_text(plain, "metadata", "name") or "",
        node=_text(plain, "spec", "nodeName"),
        problem=problem,
        repels=_text(plain, "spec", "affinity") != "",
    )


def _text(plain: Any, *path: str) -> str | None:
    """Return the text at the path, "" if it is absent, None if the value isn't a text."""
    for key in path:
        if plain is None:
            return ""
        if not isinstance(plain, dict):
            return None
        plain = plain.get(key)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else None


def mapping(value: object) -> Mapping[Any, Any]:
    """Return a value that ought to be a mapping, or an empty one if it isn't."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[Any, Any]]:
    """Return the items of a value that ought to be a list of mappings, as `mapping` does."""
    return [mapping(item) for item in value] if isinstance(value, list) else []

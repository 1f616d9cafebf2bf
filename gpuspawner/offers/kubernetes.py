"""The Kubernetes objects in an accelerator, read as strictly as the API server reads them.

The rules are those of k8s.io/kubernetes `pkg/apis/core/validation` (v1.36). An error when the hub
starts is better than one at each user's spawn.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Meta

from gpuspawner.kube.quoting import quote
from gpuspawner.offers import texts
from gpuspawner.offers.shapes import Frozen, OfferError, Shape, Text, each, read

LabelKey = Annotated[str, Meta(pattern=texts.LABEL_KEY)]
LabelValue = Annotated[str, Meta(pattern=texts.LABEL_VALUE)]
ObjectName = Annotated[str, Meta(pattern=texts.OBJECT_NAME)]
VolumeName = Annotated[str, Meta(pattern=texts.VOLUME_NAME)]
Variable = Annotated[str, Meta(pattern=texts.VARIABLE)]

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


class TermShape(Shape, frozen=True, rename="camel"):
    """A node selector term."""

    match_expressions: tuple[Any, ...] = ()
    match_fields: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if not self.match_expressions and not self.match_fields:
            reason = "an empty term matches no node; write matchExpressions or matchFields"
            raise OfferError("", reason)
        each(self.match_expressions, Expression, ".matchExpressions")
        each(self.match_fields, FieldExpression, ".matchFields")


class Expression(Shape, frozen=True):
    """One of the `matchExpressions` of a term."""

    key: LabelKey
    operator: Annotated[str, Meta(pattern=texts.OPERATOR)]
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        operator, values = self.operator, self.values
        if operator in ("In", "NotIn"):
            if not values:
                raise OfferError("", f"{operator} needs values")
            each(values, LabelValue, ".values")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                raise OfferError(".values", f"{operator} takes no values")
        elif len(values) != 1 or not _INTEGER.fullmatch(values[0]):
            raise OfferError("", f"{operator} needs one value, a whole number in quotes")


class FieldExpression(Shape, frozen=True):
    """One of the `matchFields` of a term."""

    key: Annotated[str, Meta(pattern=texts.FIELD)]
    operator: Annotated[str, Meta(pattern=texts.OPERATOR_ON_FIELD)]
    values: tuple[ObjectName, ...] = ()

    def __post_init__(self) -> None:
        if len(self.values) != 1:
            raise OfferError("", f"{self.operator} on a field needs exactly one value")


class TolerationShape(Shape, frozen=True, rename="camel"):
    """Allows a pod on nodes with a taint."""

    key: LabelKey | None = None
    operator: Annotated[str, Meta(pattern=texts.OPERATOR_ON_TAINT)] = "Equal"
    value: LabelValue = ""
    effect: Annotated[str, Meta(pattern=texts.EFFECT)] | None = None
    toleration_seconds: int | None = None

    def __post_init__(self) -> None:
        if self.key is None and self.operator != "Exists":
            reason = "without a key the operator must be Exists, which tolerates every taint"
            raise OfferError("", reason)
        if self.value and self.operator == "Exists":
            raise OfferError(".value", "Exists takes no value; use the operator Equal")
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            raise OfferError(".tolerationSeconds", "is only allowed with the effect NoExecute")


class Mount(Shape, frozen=True, rename="camel"):
    """Mounts a volume in the server's container."""

    name: VolumeName
    mount_path: Annotated[str, Meta(pattern=texts.MOUNT_PATH)]
    read_only: bool = False
    sub_path: Text = ""
    sub_path_expr: Text = ""
    mount_propagation: Text = ""
    recursive_read_only: Text = ""


def check_entries(entries: Mapping[str, Any], key: Any, value: Any, place: str) -> None:
    """Check the type of every key and every value of a mapping."""
    for name, part in entries.items():
        read(name, key, f"{place}[{quote(name)}]")
        read(part, value, f"{place}[{quote(name)}]")


def check_volumes(volumes: Iterable[object], place: str) -> None:
    """Check that every volume has its own name, and one source."""
    names: set[str] = set()
    for index, volume in enumerate(each(volumes, dict, place)):
        name = _volume_name(volume, f"{place}[{index}]")
        if name in names:
            raise OfferError(f"{place}[{index}]['name']", f"there is another volume {quote(name)}")
        names.add(name)


def check_mounts(mounts: Iterable[object], place: str) -> None:
    """Check that every mount has its own path."""
    paths: set[str] = set()
    for index, mount in enumerate(each(mounts, Mount, place)):
        path = mount.mount_path
        if path in paths:
            reason = f"something else is mounted at {quote(path)}"
            raise OfferError(f"{place}[{index}].mountPath", reason)
        paths.add(path)


def without_nulls(values: Iterable[Mapping[str, Frozen]]) -> tuple[Frozen, ...]:
    """Drop keys that are null: they count as left out."""
    return tuple(
        MappingProxyType({key: part for key, part in value.items() if part is not None})
        for value in values
    )


def _volume_name(volume: Mapping[str, object], place: str) -> str:
    if "name" not in volume:
        raise OfferError(place, "'name' is missing")
    sources = [key for key in volume if key != "name"]
    if len(sources) != 1:
        reason = "a volume has one source besides its name, such as hostPath or configMap"
        raise OfferError(place, reason)
    read(volume[sources[0]], dict, f"{place}[{quote(sources[0])}]")
    return read(volume["name"], VolumeName, f"{place}['name']")

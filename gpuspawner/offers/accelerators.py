"""Reads an accelerator from the configuration, and the choices that the form starts with.

The Kubernetes objects in it are read as strictly as the API server reads them: an error when the
hub starts is better than one at each user's spawn. The rules are those of k8s.io/kubernetes
`pkg/apis/core/validation` (v1.36).
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from msgspec import Meta, field

from gpuspawner.kube.meta import Quantity
from gpuspawner.kube.quoting import quote
from gpuspawner.offers import texts
from gpuspawner.offers.shapes import (
    Count,
    OfferError,
    Shape,
    Some,
    Text,
    each,
    offered_key,
    read,
    read_cpu_choices,
    read_memory,
    read_memory_choices,
    read_millicores,
)
from gpuspawner.offers.types import Accelerator, Choices, Default, ScaleUp

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


def _volume_name(volume: Mapping[str, object], place: str) -> str:
    if "name" not in volume:
        raise OfferError(place, "'name' is missing")
    sources = [key for key in volume if key != "name"]
    if len(sources) != 1:
        reason = "a volume has one source besides its name, such as hostPath or configMap"
        raise OfferError(place, reason)
    read(volume[sources[0]], dict, f"{place}[{quote(sources[0])}]")
    return read(volume["name"], VolumeName, f"{place}['name']")


T = TypeVar("T")

NVIDIA = "nvidia.com/gpu"
"""The resource that NVIDIA's device plugin reports; the default."""


class WrittenAccelerator(Shape, frozen=True):
    """An entry of `accelerators`. Each `Any` has its own shape."""

    display_name: Text = ""
    description: Text = ""
    resource: Annotated[str, Meta(pattern=texts.RESOURCE)] = NVIDIA
    counts: Some[Count] = (1,)
    node_selector: Annotated[dict[str, Any], Meta(min_length=1)] = field(default_factory=dict)
    node_affinity: Some[Any] = ()
    tolerations: tuple[Any, ...] = ()
    environment: dict[str, Any] = field(default_factory=dict)
    volumes: tuple[Any, ...] = ()
    volume_mounts: tuple[Any, ...] = ()
    runtime_class: ObjectName | None = None
    shared_memory: Quantity | None = None
    memory_choices: Any = None
    cpu_choices: Any = None
    default: Any = None
    scale_up: Any = None

    def __post_init__(self) -> None:
        if not self.node_selector and not self.node_affinity:
            missing = "'node_selector' or 'node_affinity' is missing; it says which nodes have it"
            raise OfferError("", missing)
        for index, count in enumerate(self.counts):
            if count in self.counts[:index]:
                raise OfferError(f".counts[{index}]", f"{count} is listed twice")
        labels = LabelKey, LabelValue
        check_entries(self.node_selector, *labels, ".node_selector")
        check_entries(self.environment, Variable, str, ".environment")
        each(self.node_affinity, TermShape, ".node_affinity")
        each(self.tolerations, TolerationShape, ".tolerations")
        check_volumes(self.volumes, ".volumes")
        check_mounts(self.volume_mounts, ".volume_mounts")


def accelerator(
    key: str, written: WrittenAccelerator, place: str, choices: Callable[[Accelerator], Choices]
) -> Accelerator:
    """Return an accelerator; its default must be one of its choices."""
    size, memory, cpu = written.shared_memory, written.memory_choices, written.cpu_choices
    grows = written.scale_up
    found = Accelerator(
        key=key,
        display_name=written.display_name or key,
        description=written.description,
        resource=written.resource,
        counts=written.counts,
        node_selector=MappingProxyType(written.node_selector),
        node_affinity=written.node_affinity,
        tolerations=written.tolerations,
        environment=MappingProxyType(written.environment),
        volumes=written.volumes,
        volume_mounts=written.volume_mounts,
        runtime_class=written.runtime_class,
        shared_memory=_if_given(_bytes, size, f"{place}.shared_memory"),
        memory_choices=_if_given(read_memory_choices, memory, f"{place}.memory_choices"),
        cpu_choices=_if_given(read_cpu_choices, cpu, f"{place}.cpu_choices"),
        scale_up=None if grows is None else read(grows, ScaleUp, f"{place}.scale_up"),
    )
    if written.default is None:
        return found
    return replace(found, default=read_default(written.default, choices(found), f"{place}.default"))


def _if_given(read: Callable[[Any, str], T], value: object, place: str) -> T | None:
    return None if value is None else read(value, place)


def _bytes(written: Quantity, place: str) -> int:
    return read_memory(written, place).bytes


class WrittenDefault(Shape, frozen=True):
    """The `default` of an accelerator."""

    gpus: Count | None = None
    image: Text | None = None
    memory: Quantity | None = None
    cpu: Quantity | None = None


def read_default_accelerator(key: object, accelerators: Collection[str]) -> str | None:
    """Return the key of the accelerator that the form starts with; None: no accelerator.

    `key` is the trait `default_accelerator`; `accelerators` are the keys of the accelerators.
    """
    if key is None:
        return next(iter(accelerators), None)
    if key == "":
        return None
    wanted = read(key, str, "default_accelerator")
    if not accelerators:
        reason = f"{quote(wanted)} is not in accelerators; one that the hub discovers is no default"
        raise OfferError("default_accelerator", reason)
    return offered_key(wanted, accelerators, "default_accelerator", "accelerator ")


def read_default(value: object, choices: Choices, place: str) -> Default:
    """Read the `default` of an accelerator; it must be one of its choices."""
    written = read(value, WrittenDefault, place)
    memory, cpu = written.memory, written.cpu
    size = None if memory is None else read_memory(memory, f"{place}.memory").bytes
    cores = None if cpu is None else read_millicores(cpu, f"{place}.cpu")
    sizes = {choice.bytes: choice for choice in choices.memory}
    for name, chosen, among in (
        ("gpus", written.gpus, choices.counts),
        ("image", written.image, [image.key for image in choices.images]),
        ("memory", size, sizes),
        ("cpu", cores, choices.cpu),
    ):
        if chosen is not None and chosen not in among:
            reason = f"{quote(getattr(written, name))} is not among the choices"
            raise OfferError(f"{place}.{name}", reason)
    return Default(written.gpus, written.image, None if size is None else sizes[size], cores)

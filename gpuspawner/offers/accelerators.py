"""Reads an accelerator from the configuration, and the choices that the form starts with."""

from collections.abc import Callable, Collection
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from msgspec import Meta, field

from gpuspawner.kube.meta import Quantity
from gpuspawner.kube.quoting import quote
from gpuspawner.offers import texts
from gpuspawner.offers.kubernetes import (
    LabelKey,
    LabelValue,
    ObjectName,
    TermShape,
    TolerationShape,
    Variable,
    check_entries,
    check_mounts,
    check_volumes,
    without_nulls,
)
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
        tolerations=without_nulls(written.tolerations),
        environment=MappingProxyType(written.environment),
        volumes=written.volumes,
        volume_mounts=without_nulls(written.volume_mounts),
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
        reason = f"there is no accelerator {quote(wanted)}; there are none"
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

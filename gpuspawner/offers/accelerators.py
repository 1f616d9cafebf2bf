"""An accelerator, as it is written and as it is offered."""

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

from msgspec import Meta, field

from gpuspawner.offers import kubernetes, quantities, texts
from gpuspawner.offers.errors import OfferError
from gpuspawner.offers.shapes import Count, Quantity, Shape, Some, Text, each, read
from gpuspawner.offers.types import Accelerator, Choices, Default, ScaleUp
from gpuspawner.quoting import quote

T = TypeVar("T")

NVIDIA = "nvidia.com/gpu"
"""The resource that NVIDIA's device plugin reports, and the one assumed."""


class WrittenAccelerator(Shape, frozen=True):
    """One of `accelerators`. What is `Any` has a shape of its own."""

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
    runtime_class: kubernetes.ObjectName | None = None
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
                raise OfferError(f".counts[{index}]", f"{count} is there twice")
        labels = kubernetes.LabelKey, kubernetes.LabelValue
        kubernetes.check_entries(self.node_selector, *labels, ".node_selector")
        kubernetes.check_entries(self.environment, kubernetes.Variable, str, ".environment")
        each(self.node_affinity, kubernetes.Term, ".node_affinity")
        each(self.tolerations, kubernetes.Toleration, ".tolerations")
        kubernetes.check_volumes(self.volumes, ".volumes")
        kubernetes.check_mounts(self.volume_mounts, ".volume_mounts")


class WrittenDefault(Shape, frozen=True):
    """The `default` of an accelerator."""

    gpus: Count | None = None
    image: Text | None = None
    memory: Quantity | None = None
    cpu: Quantity | None = None


def accelerator(
    key: str, written: WrittenAccelerator, place: str, choices: Callable[[Accelerator], Choices]
) -> Accelerator:
    """An accelerator, with its default among the choices that there are with it."""
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
        tolerations=kubernetes.without_nulls(written.tolerations),
        environment=MappingProxyType(written.environment),
        volumes=written.volumes,
        volume_mounts=kubernetes.without_nulls(written.volume_mounts),
        runtime_class=written.runtime_class,
        shared_memory=_if_given(_bytes, size, f"{place}.shared_memory"),
        memory_choices=_if_given(quantities.memory_choices, memory, f"{place}.memory_choices"),
        cpu_choices=_if_given(quantities.cpu_choices, cpu, f"{place}.cpu_choices"),
        scale_up=None if grows is None else read(grows, ScaleUp, f"{place}.scale_up"),
    )
    if written.default is None:
        return found
    return replace(found, default=_default(written.default, choices(found), f"{place}.default"))


def _default(value: object, choices: Choices, place: str) -> Default:
    written = read(value, WrittenDefault, place)
    size = _if_given(_bytes, written.memory, f"{place}.memory")
    cores = _if_given(quantities.millicores, written.cpu, f"{place}.cpu")
    sizes = {memory.bytes: memory for memory in choices.memory}
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


def _if_given(read: Callable[[Any, str], T], value: object, place: str) -> T | None:
    return None if value is None else read(value, place)


def _bytes(written: Quantity, place: str) -> int:
    return quantities.memory(written, place).bytes

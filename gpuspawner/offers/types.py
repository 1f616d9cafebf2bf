"""The types of the offers. Their values can't change once the hub has started."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Never

import msgspec
from msgspec import Meta

from gpuspawner.offers import regexes, vendors
from gpuspawner.offers.shapes import Count, Frozen, Memory, Shape
from gpuspawner.offers.texts import is_reference


def nothing() -> Mapping[Any, Never]:
    """An empty, read-only mapping."""
    return MappingProxyType({})


class ScaleUp(Shape, frozen=True):
    """A pool of nodes that an autoscaler grows for waiting pods; also the shape of `scale_up`.

    Attributes:
        max_nodes: The maximum number of nodes with this accelerator, in all pools together.
        minutes: How long it usually takes until a new node can run a pod.
    """

    max_nodes: Count
    minutes: Annotated[int, Meta(ge=1, lt=10**6)] | Annotated[float, Meta(gt=0, lt=10**6)]


class Default(msgspec.Struct, frozen=True):
    """The choices if a user makes none; None: the first one offered. CPU is in millicores."""

    gpus: int | None = None
    image: str | None = None
    memory: Memory | None = None
    cpu: int | None = None


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One model of GPU (or a slice of one) and what a pod needs to get it.

    Attributes:
        key: Its name in `user_options`.
        description: A sentence about its use; may be empty.
        resource: The extended resource that the device plugin reports.
        counts: How many of them one server may have, in the order of the form.
        node_selector: Labels that a node must have.
        node_affinity: Node selector terms; a node must match one of them.
        shared_memory: Size of /dev/shm in bytes; None leaves the container runtime's 64 MB.
        memory_choices: Sizes for this accelerator; None means those of the whole hub.
        cpu_choices: Millicores for this accelerator; None means those of the whole hub.
        scale_up: Set if its pool of nodes can grow.
        discovered: Whether the hub found it on the nodes instead of in the configuration.
    """

    key: str
    display_name: str
    resource: str
    description: str = ""
    counts: tuple[int, ...] = (1,)
    node_selector: Mapping[str, str] = field(default_factory=nothing, hash=False)
    node_affinity: tuple[Frozen, ...] = field(default=(), hash=False)
    tolerations: tuple[Frozen, ...] = field(default=(), hash=False)
    environment: Mapping[str, str] = field(default_factory=nothing, hash=False)
    volumes: tuple[Frozen, ...] = field(default=(), hash=False)
    volume_mounts: tuple[Frozen, ...] = field(default=(), hash=False)
    runtime_class: str | None = None
    shared_memory: int | None = None
    memory_choices: tuple[Memory, ...] | None = None
    cpu_choices: tuple[int, ...] | None = None
    default: Default = field(default_factory=Default)
    scale_up: ScaleUp | None = None
    discovered: bool = False

    @property
    def is_shared(self) -> bool:
        """Whether pods take turns on one GPU, by the names of NVIDIA's and GKE's device plugins."""
        return vendors.is_shared(self.resource, self.node_selector)

    @property
    def is_slice(self) -> bool:
        """Whether it is a MIG slice: a part of a GPU with memory of its own."""
        return vendors.is_slice(self.resource, self.node_selector)

    @property
    def slice_memory(self) -> int | None:
        """How many GB of memory the slice has; None if it is none, or if nothing says so."""
        if not self.is_slice:
            return None
        return vendors.slice_memory(self.resource, self.node_selector)

    def narrows(self, other: "Accelerator") -> bool:
        """Whether it asks nodes for all labels of the other and more, as "T4" narrows "any GPU"."""
        return other.node_selector.items() < self.node_selector.items()


class Image(msgspec.Struct, frozen=True):
    """A container image on offer.

    Attributes:
        key: Its name in `user_options`.
        accelerators: Keys of the accelerators that it is offered with; None in the set means
            without a GPU. None instead of a set means with all.
    """

    key: str
    display_name: str
    image: str
    accelerators: frozenset[str | None] | None = None

    def suits(self, accelerator: Accelerator | None) -> bool:
        """Whether it is offered with this accelerator, or without a GPU if it is None."""
        if self.accelerators is None:
            return True
        return (accelerator.key if accelerator else None) in self.accelerators


class UnlistedImage(msgspec.Struct, frozen=True):
    """Images that aren't listed, but that users can enter.

    Attributes:
        regex: The administrator's expression, which must match a whole reference.
        allowed: Matches only whole references that users can enter.
        message: The administrator's description of these images; may be empty.
    """

    display_name: str
    regex: str
    allowed: re.Pattern[str]
    message: str

    def image(self, written: str) -> Image | None:
        """Return the image with this reference, if users can enter it."""
        try:  # the pattern begins with ^
            is_one = is_reference(written) and regexes.begins(self.allowed.pattern, written)
        except regexes.TooLongError:
            is_one = False
        return Image(key=written, display_name=written, image=written) if is_one else None


class UnlistedMemory(msgspec.Struct, frozen=True):
    """Memory sizes that aren't listed, but that users can enter.

    Attributes:
        sizes: All of them, ascending.
    """

    display_name: str
    sizes: tuple[Memory, ...]
    step: str


class Choices(msgspec.Struct, frozen=True):
    """The choices with one accelerator, or without a GPU; an empty tuple means no choice.

    Attributes:
        counts: Numbers of GPUs; `(0,)` without an accelerator.
        cpu: Millicores.
        default: The choices for options that a user leaves out.
        unlisted_image: Images that users can enter, if any.
        unlisted_memory: Sizes that users can enter, if any.
    """

    counts: tuple[int, ...]
    images: tuple[Image, ...]
    memory: tuple[Memory, ...]
    cpu: tuple[int, ...]
    default: Default
    unlisted_image: UnlistedImage | None = None
    unlisted_memory: UnlistedMemory | None = None

    def image(self, key: str) -> Image | None:
        """Return the listed image with this key, or the image that a user entered."""
        listed = next((image for image in self.images if image.key == key), None)
        if listed is None and self.unlisted_image is not None:
            return self.unlisted_image.image(key)
        return listed

    @property
    def sizes(self) -> tuple[Memory, ...]:
        """All memory sizes; those that aren't listed come last."""
        return self.memory + (self.unlisted_memory.sizes if self.unlisted_memory else ())

    @property
    def least_memory(self) -> int | None:
        """The smallest size in bytes; None if KubeSpawner's own is the default."""
        if self.default.memory is None:
            return None
        return min(size.bytes for size in self.sizes)

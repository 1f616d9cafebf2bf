"""What the administrator offers, as types that cannot change once the hub has started."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated

from msgspec import Meta

from gpuspawner import patterns
from gpuspawner.offers.frozen import Frozen
from gpuspawner.offers.references import is_reference
from gpuspawner.offers.shapes import Count, Shape


def nothing() -> Mapping[str, str]:
    """An empty mapping that cannot be filled."""
    return MappingProxyType({})


class ScaleUp(Shape, frozen=True):
    """A pool of nodes that an autoscaler grows while pods wait for it, as it is also written.

    Attributes:
        max_nodes: How many nodes of this accelerator there can be.
        minutes: How long a new node usually takes until it can run a pod.
    """

    max_nodes: Count
    minutes: Annotated[int, Meta(ge=1, lt=10**6)] | Annotated[float, Meta(gt=0, lt=10**6)]


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory size on offer.

    Attributes:
        text: As the administrator wrote it, such as `16Gi`; also its name in `user_options`.
        bytes: The same in bytes.
    """

    text: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Default:
    """What is taken when a person leaves a choice out. None: the first on offer.

    Attributes:
        gpus: How many GPUs.
        image: Key of an image.
        memory: A memory size.
        cpu: Millicores.
    """

    gpus: int | None = None
    image: str | None = None
    memory: Memory | None = None
    cpu: int | None = None


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One model of GPU (or a slice of one) and what a pod needs to get it.

    Attributes:
        key: Its name in `user_options`.
        display_name: Its name for people.
        description: What it is good for, in a sentence; may be empty.
        resource: The extended resource that the device plugin reports.
        counts: How many of them one server may have, in the order of the form.
        node_selector: Labels that a node must have.
        node_affinity: Node selector terms, any one of which a node must match.
        tolerations: Tolerations of its nodes' taints.
        environment: Environment variables of the server.
        volumes: Volumes of the pod.
        volume_mounts: Where the server mounts them.
        runtime_class: Name of a RuntimeClass.
        shared_memory: Size of /dev/shm in bytes; None leaves the container runtime's 64 MB.
        memory_choices: Sizes for this accelerator; None means those of the whole hub.
        cpu_choices: Millicores for this accelerator; None means those of the whole hub.
        default: What is taken for choices that a person leaves out.
        scale_up: Set when its pool of nodes can grow.
        discovered: Whether the nodes told of it, and not the administrator.
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
    default: Default = Default()
    scale_up: ScaleUp | None = None
    discovered: bool = False

    @property
    def is_shared(self) -> bool:
        """Whether several pods use one GPU in turns, by the names of NVIDIA's device plugin."""
        labels = self.node_selector.values()
        return self.resource.endswith(".shared") or any(it.endswith("-SHARED") for it in labels)

    @property
    def is_slice(self) -> bool:
        """Whether it is a MIG slice: a part of a GPU with memory of its own."""
        return self.resource.startswith("nvidia.com/mig-")


@dataclass(frozen=True, slots=True)
class Image:
    """A container image on offer.

    Attributes:
        key: Its name in `user_options`.
        display_name: Its name for people.
        image: Image reference.
        accelerators: Keys of the accelerators it is for, None among them for no accelerator at all;
            None instead of a set: for everything.
    """

    key: str
    display_name: str
    image: str
    accelerators: frozenset[str | None] | None = None

    def suits(self, accelerator: Accelerator | None) -> bool:
        """Whether it is offered together with this accelerator (None: without any)."""
        if self.accelerators is None:
            return True
        return (accelerator.key if accelerator else None) in self.accelerators


@dataclass(frozen=True, slots=True)
class UnlistedImage:
    """Images that are on no list and may be written in.

    Attributes:
        display_name: The administrator's name for the choice; may be empty.
        regex: The administrator's expression, which has to match a whole reference.
        allowed: Matches only whole references that may be written in.
        message: The administrator's description of these images; may be empty.
    """

    display_name: str
    regex: str
    allowed: re.Pattern[str]
    message: str

    def image(self, written: str) -> Image | None:
        """The image that a reference stands for, if it may be written in."""
        if not is_reference(written) or not self._allows(written):
            return None
        return Image(key=written, display_name=written, image=written)

    def _allows(self, written: str) -> bool:
        try:
            return patterns.begins(self.allowed.pattern, written)  # it begins with ^
        except patterns.TooLongError:
            return False


@dataclass(frozen=True, slots=True)
class UnlistedMemory:
    """Sizes of memory that are on no list and may be written in.

    Attributes:
        display_name: The administrator's name for the choice; may be empty.
        sizes: All of them, from the least to the most.
        step: The difference between two sizes, as Kubernetes writes it.
    """

    display_name: str
    sizes: tuple[Memory, ...]
    step: str


@dataclass(frozen=True, slots=True)
class Choices:
    """All that can be chosen once the accelerator is chosen.

    Attributes:
        counts: Numbers of GPUs; `(0,)` without an accelerator.
        images: Images; empty where the image is not a choice.
        memory: Memory sizes; empty where memory is not a choice.
        cpu: Millicores; empty where CPU is not a choice.
        default: What is taken for what is left out: for each choice there is, one of it.
        unlisted_image: Images that may be written in; None: none may.
        unlisted_memory: Sizes that may be written in; None: none may.
    """

    counts: tuple[int, ...]
    images: tuple[Image, ...]
    memory: tuple[Memory, ...]
    cpu: tuple[int, ...]
    default: Default
    unlisted_image: UnlistedImage | None = None
    unlisted_memory: UnlistedMemory | None = None

    def image(self, key: str) -> Image | None:
        """The image of this key, or the one that is written in."""
        listed = next((image for image in self.images if image.key == key), None)
        if listed is None and self.unlisted_image is not None:
            return self.unlisted_image.image(key)
        return listed

    @property
    def sizes(self) -> tuple[Memory, ...]:
        """All sizes of memory, those that may be written in last."""
        return self.memory + (self.unlisted_memory.sizes if self.unlisted_memory else ())

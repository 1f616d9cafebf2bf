"""All offers of a hub."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated

from msgspec import Meta

from gpuspawner.kube.meta import Quantity
from gpuspawner.kube.quantity import exact_bytes
from gpuspawner.kube.quoting import one_line, quote
from gpuspawner.offers import regexes, texts
from gpuspawner.offers.accelerators import WrittenAccelerator, accelerator, read_default_accelerator
from gpuspawner.offers.shapes import (
    Memory,
    OfferError,
    Shape,
    Some,
    Text,
    keyed,
    offered_key,
    read,
    read_cpu_choices,
    read_memory,
    read_memory_choices,
    same_key,
)
from gpuspawner.offers.types import (
    Accelerator,
    Choices,
    Default,
    Image,
    UnlistedImage,
    UnlistedMemory,
    nothing,
)

_MOST_SIZES = 256
"""A schema and a form list every size."""

_GIB = 2**30


class WrittenImage(Shape, frozen=True):
    """An entry of `images`."""

    image: Annotated[str, Meta(pattern=texts.IMAGE)]
    display_name: Text = ""
    accelerators: Some[Text | None] | None = None


class WrittenUnlistedImage(Shape, frozen=True):
    """The trait `unlisted_image`.

    Its keys mean the same as in `unlisted_choice` of KubeSpawner's profiles.
    """

    display_name: Text = ""
    validation_regex: Text = ""
    validation_message: Text = ""


class WrittenUnlistedMemory(Shape, frozen=True):
    """The trait `unlisted_memory`."""

    display_name: Text = ""
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


def _image(key: str, written: WrittenImage, place: str, accelerators: Collection[str]) -> Image:
    """Return an image. `accelerators` are the known keys; empty if they will be discovered."""
    tied = {
        name and offered_key(name, accelerators, f"{place}.accelerators[{index}]", "accelerator ")
        for index, name in enumerate(written.accelerators or ())
    }
    return Image(key, written.display_name or key, written.image, frozenset(tied) or None)


@dataclass(frozen=True, slots=True)
class Offers:
    """The offers of the whole hub. They never change; an empty mapping or tuple means no choice.

    Attributes:
        accelerators: By key, in the order of the configuration.
        images: By key, in the order of the configuration.
        cpu_choices: Millicores.
        default_accelerator: Key of the accelerator if a user doesn't choose; None: no accelerator.
        unlisted_image: Images that users can enter, if any.
        unlisted_memory: Memory sizes that users can enter, if any.
    """

    accelerators: Mapping[str, Accelerator] = field(default_factory=nothing, hash=False)
    images: Mapping[str, Image] = field(default_factory=nothing, hash=False)
    memory_choices: tuple[Memory, ...] = ()
    cpu_choices: tuple[int, ...] = ()
    default_accelerator: str | None = None
    unlisted_image: UnlistedImage | None = None
    unlisted_memory: UnlistedMemory | None = None

    @classmethod
    def parse(
        cls,
        *,
        accelerators: object = MappingProxyType({}),
        images: object = MappingProxyType({}),
        memory_choices: object = (),
        cpu_choices: object = (),
        default_accelerator: object = None,
        unlisted_image: object = MappingProxyType({}),
        unlisted_memory: object = MappingProxyType({}),
    ) -> "Offers":
        """Read the traits of these names strictly; the first error refuses all of them.

        If `default_accelerator` is None, the first accelerator is the default, like the first
        profile of KubeSpawner. If it is an empty text, the default is a server without a GPU.

        Raises:
            OfferError: The value of a trait is invalid.
        """
        machines = keyed(accelerators, WrittenAccelerator, "accelerators")
        containers = {
            key: _image(key, it, f"images[{quote(key)}]", machines)
            for key, it in keyed(images, WrittenImage, "images").items()
        }
        hub = cls(
            images=MappingProxyType(containers),
            memory_choices=read_memory_choices(memory_choices, "memory_choices"),
            cpu_choices=read_cpu_choices(cpu_choices, "cpu_choices"),
            unlisted_image=_unlisted_image(unlisted_image),
            unlisted_memory=_unlisted_memory(unlisted_memory),
        )
        found = {
            key: accelerator(key, it, f"accelerators[{quote(key)}]", hub.choices)
            for key, it in machines.items()
        }
        offers = replace(hub, accelerators=MappingProxyType(found))
        chosen = read_default_accelerator(default_accelerator, offers.accelerators)
        return replace(offers, default_accelerator=chosen)

    def with_accelerators(self, accelerators: Iterable[Accelerator]) -> "Offers":
        """Return these offers with the discovered accelerators; none of them is the default."""
        found = {accelerator.key: accelerator for accelerator in accelerators}
        return replace(self, accelerators=MappingProxyType(found), default_accelerator=None)

    def accelerator(self, key: str) -> Accelerator | None:
        """Return the accelerator with this key, in upper or lower case."""
        wanted = same_key(key)
        return next((it for it in self.accelerators.values() if same_key(it.key) == wanted), None)

    def choices(self, accelerator: Accelerator | None) -> Choices:
        """Return the choices with this accelerator, or without a GPU if it is None."""
        images = tuple(image for image in self.images.values() if image.suits(accelerator))
        counts = accelerator.counts if accelerator else (0,)
        own = accelerator.default if accelerator else Default()
        memory = accelerator.memory_choices if accelerator else None
        memory = self.memory_choices if memory is None else memory
        cpu = accelerator.cpu_choices if accelerator else None
        cpu = self.cpu_choices if cpu is None else cpu
        default = Default(  # the first choice of what has no default of its own
            gpus=counts[0] if own.gpus is None else own.gpus,
            image=own.image or (images[0].key if images else None),
            memory=own.memory or (memory[0] if memory else None),
            cpu=own.cpu or (cpu[0] if cpu else None),
        )
        return Choices(
            counts, images, memory, cpu, default, self.unlisted_image, self.unlisted_memory
        )


def _unlisted_image(value: object) -> UnlistedImage | None:
    """Return the images that users can enter; None for an empty mapping."""
    place = "unlisted_image"
    written = read(value, WrittenUnlistedImage, place)
    if written == WrittenUnlistedImage():
        return None
    regex = written.validation_regex
    if not regex:
        missing = "'validation_regex' is missing; it says which images users can enter"
        raise OfferError(place, missing)
    try:
        regexes.check(regex)  # not in brackets, where `a)|(?:b` is valid, but not anchored
        allowed = re.compile(texts.whole(regexes.scoped(regex)))
    except re.error as error:
        why = f"{quote(regex)} is not a regular expression: {one_line(str(error), longest=100)}"
        raise OfferError(f"{place}.validation_regex", why) from None
    return UnlistedImage(
        display_name=written.display_name,
        regex=regex,
        allowed=allowed,
        message=written.validation_message,
    )


def _unlisted_memory(value: object) -> UnlistedMemory | None:
    """Return the memory sizes that users can enter; None for an empty mapping."""
    place = "unlisted_memory"
    written = read(value, WrittenUnlistedMemory, place)
    if written == WrittenUnlistedMemory():
        return None
    if written.min is None or written.max is None:
        missing = "'min'" if written.min is None else "'max'"
        raise OfferError(place, f"{missing} is missing; write it as Kubernetes does, such as 4Gi")
    least = read_memory(written.min, f"{place}.min")
    most = read_memory(written.max, f"{place}.max")
    step = _GIB if written.step is None else read_memory(written.step, f"{place}.step").bytes
    if most.bytes < least.bytes:
        reason = f"{quote(most.text)} is less than the min, {least.text}"
        raise OfferError(f"{place}.max", reason)
    sizes = range(least.bytes, most.bytes + 1, step)
    if len(sizes) > _MOST_SIZES:
        reason = f"that makes {len(sizes)} sizes; use a step with at most {_MOST_SIZES}"
        raise OfferError(place, reason)
    named = tuple(Memory(exact_bytes(size), size) for size in sizes)
    return UnlistedMemory(display_name=written.display_name, sizes=named, step=exact_bytes(step))

"""All offers of a hub together."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Never

from msgspec import Meta

from gpuspawner import patterns
from gpuspawner.kube.quantity import exact_bytes
from gpuspawner.offers import texts
from gpuspawner.offers.accelerators import WrittenAccelerator, accelerator
from gpuspawner.offers.shapes import (
    Memory,
    OfferError,
    Quantity,
    Shape,
    Some,
    Text,
    keyed,
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
)
from gpuspawner.quoting import did_you_mean, listing, one_line, quote

_MOST_SIZES = 256
"""So that every size can be named in a schema and in a form."""

_GIB = 2**30


class WrittenImage(Shape, frozen=True):
    """One of `images`."""

    image: Annotated[str, Meta(pattern=texts.IMAGE)]
    display_name: Text = ""
    accelerators: Some[Text | None] | None = None


class WrittenUnlistedImage(Shape, frozen=True):
    """The trait `unlisted_image`.

    Its keys are those of `unlisted_choice` in KubeSpawner's profiles, where they mean the same.
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
    """`accelerators` are the keys that it may be tied to, empty if they aren't known yet."""
    by_same = {same_key(known): known for known in accelerators}
    tied: set[str | None] = set()
    for index, name in enumerate(written.accelerators or ()):
        if name is not None and by_same and same_key(name) not in by_same:
            hint = did_you_mean(name, accelerators) or f"; there are {listing(accelerators)}"
            reason = f"there is no accelerator {quote(name)}{hint}"
            raise OfferError(f"{place}.accelerators[{index}]", reason)
        tied.add(name and by_same.get(same_key(name), name))
    return Image(key, written.display_name or key, written.image, frozenset(tied) or None)


def _none() -> Mapping[str, Never]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Offers:
    """The offers of the whole hub. They never change; an empty mapping or tuple means no choice.

    Attributes:
        accelerators: By key, in the order of the configuration.
        images: By key, in the order of the configuration.
        cpu_choices: Millicores.
        default_accelerator: Key of the accelerator if a user chooses none; None: no accelerator.
        unlisted_image: Images that users can enter, if any.
        unlisted_memory: Memory sizes that users can enter, if any.
    """

    accelerators: Mapping[str, Accelerator] = field(default_factory=_none, hash=False)
    images: Mapping[str, Image] = field(default_factory=_none, hash=False)
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
        """Read the traits of these names, strictly and as a whole.

        If `default_accelerator` is None, the first one configured is the default, as with the
        profiles of KubeSpawner. If it is an empty text, there is no accelerator by default.

        Raises:
            OfferError: The value of a trait can't be offered.
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
        return replace(offers, default_accelerator=_default(offers, default_accelerator))

    def with_accelerators(self, accelerators: Iterable[Accelerator]) -> "Offers":
        """Return these offers with the discovered accelerators; none of them is the default."""
        found = {accelerator.key: accelerator for accelerator in accelerators}
        return replace(self, accelerators=MappingProxyType(found), default_accelerator=None)

    def accelerator(self, key: str) -> Accelerator | None:
        """The accelerator of this key, in upper or lower case."""
        wanted = same_key(key)
        return next((it for it in self.accelerators.values() if same_key(it.key) == wanted), None)

    def choices(self, accelerator: Accelerator | None) -> Choices:
        """The choices with this accelerator (None: without any)."""
        images = tuple(image for image in self.images.values() if image.suits(accelerator))
        counts = accelerator.counts if accelerator else (0,)
        own = accelerator.default if accelerator else Default()
        memory = accelerator.memory_choices if accelerator else None
        memory = self.memory_choices if memory is None else memory
        cpu = accelerator.cpu_choices if accelerator else None
        cpu = self.cpu_choices if cpu is None else cpu
        default = Default(
            gpus=counts[0] if own.gpus is None else own.gpus,
            image=own.image or (images[0].key if images else None),
            memory=own.memory or (memory[0] if memory else None),
            cpu=own.cpu or (cpu[0] if cpu else None),
        )
        return Choices(
            counts, images, memory, cpu, default, self.unlisted_image, self.unlisted_memory
        )


def _default(offers: Offers, key: object) -> str | None:
    if key is None:
        return next(iter(offers.accelerators), None)
    if key == "":
        return None
    wanted = read(key, str, "default_accelerator")
    accelerator = offers.accelerator(wanted)
    if accelerator is None:
        known = tuple(offers.accelerators)
        hint = did_you_mean(wanted, known) or f"; there are {listing(known) or 'none'}"
        raise OfferError("default_accelerator", f"there is no accelerator {quote(wanted)}{hint}")
    return accelerator.key


def _unlisted_image(value: object) -> UnlistedImage | None:
    """The images that users can enter; None for an empty mapping."""
    place = "unlisted_image"
    written = read(value, WrittenUnlistedImage, place)
    if written == WrittenUnlistedImage():
        return None
    regex = written.validation_regex
    if not regex:
        missing = "'validation_regex' is missing; it says which images may be written in"
        raise OfferError(place, missing)
    try:
        patterns.check(regex)  # alone: in brackets `a)|(?:b` is one too, and anchored nowhere
        allowed = re.compile(texts.whole(regex))
    except (re.error, OverflowError, RecursionError) as error:
        why = f"{quote(regex)} is not a regular expression: {one_line(str(error), longest=100)}"
        raise OfferError(f"{place}.validation_regex", why) from None
    return UnlistedImage(
        display_name=written.display_name,
        regex=regex,
        allowed=allowed,
        message=written.validation_message,
    )


def _unlisted_memory(value: object) -> UnlistedMemory | None:
    """The memory sizes that users can enter; None for an empty mapping."""
    place = "unlisted_memory"
    written = read(value, WrittenUnlistedMemory, place)
    if written == WrittenUnlistedMemory():
        return None
    if written.min is None or written.max is None:
        missing = "'min'" if written.min is None else "'max'"
        raise OfferError(place, f"{missing} is missing; write it as Kubernetes does, such as 4Gi")
    least, most = (
        read_memory(written.min, f"{place}.min"),
        read_memory(written.max, f"{place}.max"),
    )
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

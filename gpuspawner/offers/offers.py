"""All offers of a hub together."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Never

from gpuspawner.offers import quantities, unlisted
from gpuspawner.offers.accelerators import WrittenAccelerator, accelerator
from gpuspawner.offers.errors import OfferError
from gpuspawner.offers.images import WrittenImage, image
from gpuspawner.offers.keys import keyed, same_key
from gpuspawner.offers.shapes import read
from gpuspawner.offers.types import (
    Accelerator,
    Choices,
    Default,
    Image,
    Memory,
    UnlistedImage,
    UnlistedMemory,
)
from gpuspawner.quoting import did_you_mean, listing, quote


def _none() -> Mapping[str, Never]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Offers:
    """What the administrator offers, hub-wide and unchanging.

    Attributes:
        accelerators: By key, in the order of the configuration.
        images: By key, in the order of the configuration; empty: the image is not a choice.
        memory_choices: Memory sizes; empty: memory is not a choice.
        cpu_choices: Millicores; empty: CPU is not a choice.
        default_accelerator: Key of the accelerator taken when none is chosen; None: no accelerator.
        unlisted_image: Images that may be written in; None: none may.
        unlisted_memory: Sizes of memory that may be written in; None: none may.
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
            OfferError: A trait holds something that cannot be offered.
        """
        machines = keyed(accelerators, WrittenAccelerator, "accelerators")
        containers = {
            key: image(key, it, f"images[{quote(key)}]", machines)
            for key, it in keyed(images, WrittenImage, "images").items()
        }
        hub = cls(
            images=MappingProxyType(containers),
            memory_choices=quantities.memory_choices(memory_choices, "memory_choices"),
            cpu_choices=quantities.cpu_choices(cpu_choices, "cpu_choices"),
            unlisted_image=unlisted.unlisted_image(unlisted_image),
            unlisted_memory=unlisted.unlisted_memory(unlisted_memory),
        )
        found = {
            key: accelerator(key, it, f"accelerators[{quote(key)}]", hub.choices)
            for key, it in machines.items()
        }
        offers = replace(hub, accelerators=MappingProxyType(found))
        return replace(offers, default_accelerator=_default(offers, default_accelerator))

    def with_accelerators(self, accelerators: Iterable[Accelerator]) -> "Offers":
        """These offers with other accelerators, as discovered; none of them is the default."""
        found = {accelerator.key: accelerator for accelerator in accelerators}
        return replace(self, accelerators=MappingProxyType(found), default_accelerator=None)

    def accelerator(self, key: str) -> Accelerator | None:
        """The accelerator of this key, whatever its capitals."""
        wanted = same_key(key)
        return next((it for it in self.accelerators.values() if same_key(it.key) == wanted), None)

    def choices(self, accelerator: Accelerator | None) -> Choices:
        """What can be chosen with this accelerator (None: without any), and what is taken else."""
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

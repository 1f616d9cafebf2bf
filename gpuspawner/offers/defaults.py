"""The accelerator and the choices that the form starts with."""

from collections.abc import Collection

from gpuspawner.kube.meta import Quantity
from gpuspawner.kube.quoting import quote
from gpuspawner.offers.shapes import (
    Count,
    OfferError,
    Shape,
    Text,
    offered_key,
    read,
    read_memory,
    read_millicores,
)
from gpuspawner.offers.types import Choices, Default


class WrittenDefault(Shape, frozen=True):
    """The `default` of an accelerator."""

    gpus: Count | None = None
    image: Text | None = None
    memory: Quantity | None = None
    cpu: Quantity | None = None


def default_accelerator(key: object, accelerators: Collection[str]) -> str | None:
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

"""Reads one accelerator, one image, and the lists of sizes."""

import re
import string
from collections.abc import Callable, Collection, Hashable
from typing import TypeVar

from gpuspawner.offers import kubernetes, quantities
from gpuspawner.offers.reading import At, Fields
from gpuspawner.offers.references import is_reference
from gpuspawner.offers.types import (
    Accelerator,
    Choices,
    Default,
    Image,
    Memory,
    ScaleUp,
    nothing,
)
from gpuspawner.quoting import did_you_mean, listing, quote

T = TypeVar("T")
D = TypeVar("D")

NVIDIA = "nvidia.com/gpu"
"""The resource that NVIDIA's device plugin reports, and the one assumed."""

_SAME = str.maketrans(f"{string.ascii_uppercase}_", f"{string.ascii_lowercase}-")
_KEY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_ACCELERATOR = (
    "display_name",
    "description",
    "resource",
    "counts",
    "node_selector",
    "node_affinity",
    "tolerations",
    "environment",
    "volumes",
    "volume_mounts",
    "runtime_class",
    "shared_memory",
    "memory_choices",
    "cpu_choices",
    "default",
    "scale_up",
)


def same_key(key: str) -> str:
    """The form in which two keys that people would confuse are equal: `A100_80` as `a100-80`.

    Letters beyond ASCII are left alone: some of them have an ASCII letter for their small one.
    """
    return key.translate(_SAME)


def keyed(at: At, read: Callable[[str, At], T]) -> dict[str, T]:
    """A mapping of offers by key, each read by `read(key, place)`."""
    found: dict[str, T] = {}
    spellings: dict[str, str] = {}
    for key, place in at.entries():
        if not _KEY.fullmatch(key):
            raise at.error(
                f"{quote(key)} cannot be a key; use up to 63 letters, digits, '-', '_' and '.', "
                "a letter or digit first and last"
            )
        other = spellings.setdefault(same_key(key), key)
        if other != key:
            raise at.error(f"{quote(other)} and {quote(key)} are one key; rename one of them")
        found[key] = read(key, place)
    return found


def accelerator(key: str, at: At) -> Accelerator:
    """An accelerator, yet without its default, which depends on the other offers."""
    fields = at.fields(_ACCELERATOR)
    if "node_selector" not in fields and "node_affinity" not in fields:
        raise at.error("'node_selector' or 'node_affinity' is missing; it says which nodes have it")
    return Accelerator(
        key=key,
        display_name=_read(fields, "display_name", At.text, key),
        description=_read(fields, "description", At.text, ""),
        resource=_read(fields, "resource", kubernetes.resource_name, NVIDIA),
        counts=_read(fields, "counts", _counts, (1,)),
        node_selector=_read(fields, "node_selector", kubernetes.node_selector, nothing()),
        node_affinity=_read(fields, "node_affinity", kubernetes.node_affinity, ()),
        tolerations=_read(fields, "tolerations", kubernetes.tolerations, ()),
        environment=_read(fields, "environment", kubernetes.environment, nothing()),
        volumes=_read(fields, "volumes", kubernetes.volumes, ()),
        volume_mounts=_read(fields, "volume_mounts", kubernetes.volume_mounts, ()),
        runtime_class=_read(fields, "runtime_class", kubernetes.object_name, None),
        shared_memory=_read(fields, "shared_memory", _bytes, None),
        memory_choices=_read(fields, "memory_choices", memory_choices, None),
        cpu_choices=_read(fields, "cpu_choices", cpu_choices, None),
        scale_up=_read(fields, "scale_up", scale_up, None),
    )


def image(key: str, at: At, accelerators: Collection[str]) -> Image:
    """An image; `accelerators` are the keys it may be tied to, empty if they are not known yet."""
    fields = at.fields(("display_name", "image", "accelerators"), required=("image",))
    return Image(
        key=key,
        display_name=_read(fields, "display_name", At.text, key),
        image=_reference(fields["image"]),
        accelerators=_read(fields, "accelerators", lambda at: _tied_to(at, accelerators), None),
    )


def _reference(at: At) -> str:
    reference = at.text()
    if not is_reference(reference):
        raise at.error(
            f"{quote(reference)} is not an image reference, such as quay.io/jupyter/lab:2026-10-05"
        )
    return reference


def memory_choices(at: At) -> tuple[Memory, ...]:
    """Memory sizes, no two of the same amount."""
    return _different(at, quantities.memory, lambda memory: memory.bytes)


def cpu_choices(at: At) -> tuple[int, ...]:
    """Amounts of CPU in millicores, no two the same."""
    return _different(at, quantities.millicores, lambda millicores: millicores)


def default(accelerator: At, choices: Choices) -> Default:
    """The default of an accelerator, each part of it one of its choices."""
    entry = accelerator.fields(_ACCELERATOR).get("default")
    if entry is None:
        return Default()
    fields = entry.fields(("gpus", "image", "memory", "cpu"))
    images = {image.key for image in choices.images}
    return Default(
        gpus=_read(fields, "gpus", lambda at: _chosen(at, at.whole("count"), choices.counts), None),
        image=_read(fields, "image", lambda at: _chosen(at, at.text(), images), None),
        memory=_read(fields, "memory", lambda at: _size(at, choices.memory), None),
        cpu=_read(
            fields, "cpu", lambda at: _chosen(at, quantities.millicores(at), choices.cpu), None
        ),
    )


def _read(fields: Fields, name: str, read: Callable[[At], T], otherwise: D) -> T | D:
    return read(fields[name]) if name in fields else otherwise


def _different(at: At, read: Callable[[At], T], amount: Callable[[T], Hashable]) -> tuple[T, ...]:
    found: dict[Hashable, T] = {}
    for place in at.items():
        value = read(place)
        if amount(value) in found:
            raise place.error(f"{quote(place.value)} is there twice")
        found[amount(value)] = value
    return tuple(found.values())


def _counts(at: At) -> tuple[int, ...]:
    counts = _different(at, lambda place: place.whole("count"), lambda count: count)
    if not counts:
        raise at.error("is empty; name at least one count, such as [1]")
    return counts


def _bytes(at: At) -> int:
    return quantities.memory(at).bytes


def scale_up(at: At) -> ScaleUp:
    """A pool that can grow, as an accelerator and a profile of KubeSpawner's declare it.

    Raises:
        OfferError: It is not usable.
    """
    fields = at.fields(("max_nodes", "minutes"), required=("max_nodes", "minutes"))
    minutes = fields["minutes"].value
    if not isinstance(minutes, int | float) or isinstance(minutes, bool) or not 0 < minutes < 1e6:
        raise fields["minutes"].error(f"{quote(minutes)} is not a number of minutes")
    return ScaleUp(fields["max_nodes"].whole("number of nodes"), minutes)


def _tied_to(at: At, accelerators: Collection[str]) -> frozenset[str | None]:
    by_same = {same_key(key): key for key in accelerators}
    keys: set[str | None] = set()
    for place in at.items():
        if place.value is None:
            keys.add(None)
            continue
        key = place.text()
        if by_same and same_key(key) not in by_same:
            hint = did_you_mean(key, accelerators) or f"; there are {listing(accelerators)}"
            raise place.error(f"there is no accelerator {quote(key)}{hint}")
        keys.add(by_same.get(same_key(key), key))
    if not keys:
        raise at.error("is empty; name an accelerator or leave it out")
    return frozenset(keys)


def _chosen(at: At, value: T, choices: Collection[T]) -> T:
    if value not in choices:
        raise at.error(f"{quote(at.value)} is not among the choices")
    return value


def _size(at: At, choices: tuple[Memory, ...]) -> Memory:
    wanted = quantities.memory(at).bytes
    for memory in choices:
        if memory.bytes == wanted:
            return memory
    raise at.error(f"{quote(at.value)} is not among the choices")

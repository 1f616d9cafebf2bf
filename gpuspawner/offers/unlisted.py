"""What a person may write in if the administrator allows more than the listed choices.

The trait's keys are those of `unlisted_choice` in KubeSpawner's profiles, where they mean the same.
"""

import re

from gpuspawner import patterns
from gpuspawner.kube.quantity import exact_bytes
from gpuspawner.offers.errors import OfferError
from gpuspawner.offers.quantities import memory
from gpuspawner.offers.references import whole
from gpuspawner.offers.shapes import Quantity, Shape, Text, read
from gpuspawner.offers.types import Memory, UnlistedImage, UnlistedMemory
from gpuspawner.quoting import one_line, quote

_MOST_SIZES = 256
"""So that every size can be named in a schema and in a form."""

_GIB = 2**30


class WrittenUnlistedImage(Shape, frozen=True):
    """The trait `unlisted_image`."""

    display_name: Text = ""
    validation_regex: Text = ""
    validation_message: Text = ""


class WrittenUnlistedMemory(Shape, frozen=True):
    """The trait `unlisted_memory`."""

    display_name: Text = ""
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


def unlisted_image(value: object, place: str = "unlisted_image") -> UnlistedImage | None:
    """The images that may be written in; none for an empty mapping."""
    written = read(value, WrittenUnlistedImage, place)
    if written == WrittenUnlistedImage():
        return None
    regex = written.validation_regex
    if not regex:
        missing = "'validation_regex' is missing; it says which images may be written in"
        raise OfferError(place, missing)
    try:
        patterns.check(regex)  # alone: in brackets `a)|(?:b` is one too, and anchored nowhere
        allowed = re.compile(whole(regex))
    except (re.error, OverflowError, RecursionError) as error:
        why = f"{quote(regex)} is not a regular expression: {one_line(str(error), longest=100)}"
        raise OfferError(f"{place}.validation_regex", why) from None
    return UnlistedImage(
        display_name=written.display_name,
        regex=regex,
        allowed=allowed,
        message=written.validation_message,
    )


def unlisted_memory(value: object, place: str = "unlisted_memory") -> UnlistedMemory | None:
    """The sizes of memory that may be written in; none for an empty mapping."""
    written = read(value, WrittenUnlistedMemory, place)
    if written == WrittenUnlistedMemory():
        return None
    if written.min is None or written.max is None:
        missing = "'min'" if written.min is None else "'max'"
        raise OfferError(place, f"{missing} is missing; write it as Kubernetes does, such as 4Gi")
    least, most = memory(written.min, f"{place}.min"), memory(written.max, f"{place}.max")
    step = _GIB if written.step is None else memory(written.step, f"{place}.step").bytes
    if most.bytes < least.bytes:
        reason = f"{quote(most.text)} is less than the min, {least.text}"
        raise OfferError(f"{place}.max", reason)
    sizes = range(least.bytes, most.bytes + 1, step)
    if len(sizes) > _MOST_SIZES:
        reason = f"that makes {len(sizes)} sizes; use a step with at most {_MOST_SIZES}"
        raise OfferError(place, reason)
    named = tuple(Memory(exact_bytes(size), size) for size in sizes)
    return UnlistedMemory(display_name=written.display_name, sizes=named, step=exact_bytes(step))

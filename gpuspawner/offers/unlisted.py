"""What a person may write in where the administrator allows more than the listed choices.

The trait's keys are those of `unlisted_choice` in KubeSpawner's profiles, where they mean the same.
"""

import re

from gpuspawner import patterns
from gpuspawner.kube.quantity import exact_bytes
from gpuspawner.offers import quantities
from gpuspawner.offers.reading import At, Fields
from gpuspawner.offers.references import whole
from gpuspawner.offers.types import Memory, UnlistedImage, UnlistedMemory
from gpuspawner.quoting import quote

_MOST_SIZES = 256
"""So that every size can be named in a schema and in a form."""

_GIB = 2**30


def unlisted_image(at: At) -> UnlistedImage | None:
    """The images that may be written in; none for an empty mapping."""
    fields = at.fields(("display_name", "validation_regex", "validation_message"))
    if not fields:
        return None
    if "validation_regex" not in fields:
        raise at.error("'validation_regex' is missing; it says which images may be written in")
    regex = fields["validation_regex"].text()
    try:
        patterns.check(regex)  # alone: in brackets `a)|(?:b` is one too, and anchored nowhere
        allowed = re.compile(whole(regex))
    except re.error as error:
        why = f"{quote(regex)} is not a regular expression: {error}"
        raise fields["validation_regex"].error(why) from None
    return UnlistedImage(
        display_name=_text(fields, "display_name"),
        regex=regex,
        allowed=allowed,
        message=_text(fields, "validation_message"),
    )


def unlisted_memory(at: At) -> UnlistedMemory | None:
    """The sizes of memory that may be written in; none for an empty mapping."""
    fields = at.fields(("display_name", "min", "max", "step"))
    if not fields:
        return None
    for name in ("min", "max"):
        if name not in fields:
            raise at.error(f"{quote(name)} is missing; write it as Kubernetes does, such as 4Gi")
    least, most = quantities.memory(fields["min"]), quantities.memory(fields["max"])
    step = quantities.memory(fields["step"]).bytes if "step" in fields else _GIB
    if most.bytes < least.bytes:
        raise fields["max"].error(f"{quote(most.text)} is less than the min, {least.text}")
    sizes = range(least.bytes, most.bytes + 1, step)
    if len(sizes) > _MOST_SIZES:
        raise at.error(f"that makes {len(sizes)} sizes; use a step with at most {_MOST_SIZES}")
    named = tuple(Memory(exact_bytes(size), size) for size in sizes)
    return UnlistedMemory(
        display_name=_text(fields, "display_name"), sizes=named, step=exact_bytes(step)
    )


def _text(fields: Fields, name: str) -> str:
    return fields[name].text() if name in fields else ""

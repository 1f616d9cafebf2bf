"""Amounts and things in the words of people."""

from collections.abc import Sequence

from gpuspawner.kube.quantity import format_bytes
from gpuspawner.language import gettext as _
from gpuspawner.language import ngettext
from gpuspawner.policy import Grant


def memory(count: int) -> str:
    """A number of bytes: `16 GiB`."""
    text = format_bytes(count)
    number = text.rstrip("KMGTPEi")
    if number != text:
        return f"{number} {text[len(number) :]}B"
    return ngettext("{count} byte", "{count} bytes", count).format(count=count)


def cores(millicores: int) -> str:
    """An amount of CPU: `2 cores`, `0.5 cores`."""
    # A part of a core is told like several: languages differ, and this is a label, no sentence.
    number = millicores // 1000 if millicores % 1000 == 0 else 2
    text = ngettext("{count} core", "{count} cores", number)
    return text.format(count=f"{millicores / 1000:g}")


def amount(resource: str, count: int) -> str:
    """An amount of a pod's resource, in its unit."""
    match resource:
        case "memory":
            return _("{amount} of memory").format(amount=memory(count))
        case "ephemeral-storage":
            return _("{amount} of disk").format(amount=memory(count))
        case "cpu":
            return _("{amount} of CPU").format(amount=cores(count))
        case _:
            return f"{count} × {resource}"


def gpus(grant: Grant) -> str:
    """The GPUs of a grant: `2 × NVIDIA A100`; without any, `a server without a GPU`."""
    if grant.accelerator is None:
        return _("a server without a GPU")
    return f"{grant.gpus} × {grant.accelerator.display_name}"


def one_of(things: Sequence[str]) -> str:
    """Things to choose from: `a`, `a or b`, `a, b or c`."""
    return _joined(things, _("{things} or {last}"))


def all_of(things: Sequence[str]) -> str:
    """Things that come together: `a`, `a and b`, `a, b and c`."""
    return _joined(things, _("{things} and {last}"))


def minutes(count: float) -> str:
    """A usual time: `about 8 minutes`."""
    whole = max(1, round(count))
    return ngettext("about a minute", "about {count} minutes", whole).format(count=whole)


def _joined(things: Sequence[str], text: str) -> str:
    head, last = things[:-1], things[-1]
    return text.format(things=", ".join(head), last=last) if head else last

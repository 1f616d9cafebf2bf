"""Amounts and GPUs in words that people use."""

from gpuspawner.kube.quantity import format_bytes
from gpuspawner.language import gettext as _
from gpuspawner.language import ngettext
from gpuspawner.policy import Grant


def memory(count: int) -> str:
    """Name a number of bytes: `16 GiB`."""
    text = format_bytes(count)
    number = text.rstrip("KMGTPEi")
    if number != text:
        return f"{number} {text[len(number) :]}B"
    return ngettext("{count} byte", "{count} bytes", count).format(count=count)


def cores(millicores: int) -> str:
    """Name an amount of CPU: `2 cores`, `0.5 cores`."""
    # Languages differ in the plural of a fraction. Here it is that of two: "0.5 cores".
    number = millicores // 1000 if millicores % 1000 == 0 else 2
    text = ngettext("{count} core", "{count} cores", number)
    return text.format(count=f"{millicores / 1000:g}")


def amount(resource: str, count: int) -> str:
    """Name an amount of a pod's resource, in its unit."""
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
    """Name the GPUs of a grant: `2 × NVIDIA A100`, or `a server without a GPU`."""
    if grant.accelerator is None:
        return _("a server without a GPU")
    return f"{grant.gpus} × {grant.accelerator.display_name}"


def minutes(count: float) -> str:
    """Name a usual duration: `about 8 minutes`."""
    whole = max(1, round(count))
    return ngettext("about a minute", "about {count} minutes", whole).format(count=whole)

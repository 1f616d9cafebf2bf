"""Amounts and things in the words of people."""

from collections.abc import Sequence

from gpuspawner.kube.quantity import format_bytes
from gpuspawner.policy import Grant


def memory(count: int) -> str:
    """A number of bytes: `16 GiB`."""
    text = format_bytes(count)
    number = text.rstrip("KMGTPEi")
    return f"{number} {text[len(number) :]}B" if number != text else f"{text} bytes"


def cores(millicores: int) -> str:
    """An amount of CPU: `2 cores`, `0.5 cores`."""
    return "1 core" if millicores == 1000 else f"{millicores / 1000:g} cores"


def amount(resource: str, count: int) -> str:
    """An amount of a pod's resource, in its unit."""
    match resource:
        case "memory":
            return f"{memory(count)} of memory"
        case "ephemeral-storage":
            return f"{memory(count)} of disk"
        case "cpu":
            return f"{cores(count)} of CPU"
        case _:
            return f"{count} × {resource}"


def gpus(grant: Grant) -> str:
    """The GPUs of a grant: `2 × NVIDIA A100`; without any, `a server without a GPU`."""
    if grant.accelerator is None:
        return "a server without a GPU"
    return f"{grant.gpus} × {grant.accelerator.display_name}"


def one_of(things: Sequence[str]) -> str:
    """Things to choose from: `a`, `a or b`, `a, b or c`."""
    head, last = things[:-1], things[-1]
    return f"{', '.join(head)} or {last}" if head else last


def minutes(count: float) -> str:
    """A usual time: `about 8 minutes`."""
    whole = max(1, round(count))
    return "about a minute" if whole == 1 else f"about {whole} minutes"

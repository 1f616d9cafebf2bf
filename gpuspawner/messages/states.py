"""How it stands with an accelerator, in a word and in figures."""

import re
from dataclasses import dataclass

from gpuspawner.availability import Availability, State
from gpuspawner.messages import words
from gpuspawner.messages.language import gettext as _
from gpuspawner.offers import Accelerator
from gpuspawner.preflight.decision import Room

_MIG = re.compile(r"nvidia\.com/mig-[0-9]+g\.([0-9]+)gb(?:\.[a-z.]+)?")
"""How the device plugin names slices: ``nvidia.com/mig-1g.10gb``."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is told about an accelerator before it is chosen.

    Attributes:
        word: The state, in a word or two.
        detail: Its figures; may be empty.
    """

    word: str
    detail: str = ""


def sharing(accelerator: Accelerator) -> str:
    """What others have of the same GPU; empty where it is whole. Plain text."""
    if accelerator.is_shared:
        return _("Shared with others at the same time; its memory is not isolated.")
    if not accelerator.is_slice:
        return ""
    told = _MIG.fullmatch(accelerator.resource)
    if told is None:
        return _("A slice of a GPU, with memory of its own.")
    return _("A slice of a GPU, with {count} GB of memory of its own.").format(count=told[1])


def standing(row: Availability) -> Standing:
    """A state in words. Plain text, not yet escaped for HTML."""
    match row.state:
        case State.FREE:
            return Standing("Free", _free(row.gpus) if row.gpus else "")
        case State.BUSY:
            return _busy(row.gpus)
        case State.CAN_SCALE_UP:
            usual = words.minutes(row.scale_up.minutes) if row.scale_up else "some minutes"
            return Standing("New machine", f"ready in {usual}")
        case State.AWAY:
            return Standing("Away", "its machines are out of service right now")
        case State.ABSENT:
            return Standing("Not here", "no machine here has it at the moment")
        case State.READING:
            return Standing("Looking", "still reading the cluster")
        case State.UNKNOWN:
            return Standing("Unknown", "whether it is free cannot be told right now")


def _free(gpus: Room) -> str:
    figures = f"{gpus.free} of {gpus.total} free"
    if gpus.most_free < gpus.free:
        return f"{figures}, at most {gpus.most_free} on one machine"
    return figures


def _busy(gpus: Room | None) -> Standing:
    if gpus is None:
        return Standing("Full", "no machine has room right now")
    if gpus.most_free >= gpus.asked:
        return Standing("Full", f"{_free(gpus)}, but too little memory or CPU beside them")
    if gpus.free:
        return Standing("In use", _free(gpus))
    return Standing("In use", "the only one is in use" if gpus.total == 1 else _all(gpus.total))


def _all(total: int) -> str:
    return f"all {total} are in use" if total else "none is free right now"

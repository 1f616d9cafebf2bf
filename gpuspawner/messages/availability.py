"""How it stands with an accelerator, in a word and in figures."""

import re
from dataclasses import dataclass

from gpuspawner.availability import Availability, State
from gpuspawner.language import gettext as _
from gpuspawner.language import ngettext
from gpuspawner.messages import words
from gpuspawner.offers import Accelerator
from gpuspawner.preflight.decision import Room

_MIG = re.compile(r"nvidia\.com/mig-[0-9]+g\.([0-9]+)gb(?:\.[a-z.]+)?")
"""How the device plugin names slices: ``nvidia.com/mig-1g.10gb``."""


@dataclass(frozen=True, slots=True)
class StateText:
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


def state_text(row: Availability) -> StateText:
    """A state in words. Plain text, not yet escaped for HTML."""
    match row.state:
        case State.FREE:
            return StateText(_("Free"), _free(row.gpus) if row.gpus else "")
        case State.BUSY:
            return _busy(row.gpus)
        case State.CAN_SCALE_UP if row.scale_up is not None:
            usual = words.minutes(row.scale_up.minutes)
            return StateText(_("New machine"), _("ready in {time}").format(time=usual))
        case State.CAN_SCALE_UP:
            return StateText(_("New machine"))
        case State.AWAY:
            return StateText(_("Away"), _("its machines are out of service right now"))
        case State.ABSENT:
            return StateText(_("Not here"), _("no machine here has it at the moment"))
        case State.READING:
            return StateText(_("Looking"), _("still reading the cluster"))
        case State.UNKNOWN:
            return StateText(_("Unknown"), _("whether it is free cannot be told right now"))


def _free(gpus: Room) -> str:
    if gpus.most_free < gpus.free:
        text = ngettext(
            "{count} of {total} free, at most {most} on one machine",
            "{count} of {total} free, at most {most} on one machine",
            gpus.free,
        )
    else:
        text = ngettext("{count} of {total} free", "{count} of {total} free", gpus.free)
    return text.format(count=gpus.free, total=gpus.total, most=gpus.most_free)


def _busy(gpus: Room | None) -> StateText:
    if gpus is None:
        return StateText(_("Full"), _("no machine has room right now"))
    if gpus.most_free >= gpus.asked:
        text = _("{figures}, but too little memory or CPU beside them")
        return StateText(_("Full"), text.format(figures=_free(gpus)))
    if gpus.free:
        return StateText(_("In use"), _free(gpus))
    if gpus.total == 0:
        return StateText(_("In use"), _("none is free right now"))
    text = ngettext("the only one is in use", "all {count} are in use", gpus.total)
    return StateText(_("In use"), text.format(count=gpus.total))

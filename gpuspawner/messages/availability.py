"""The availability of an accelerator, as a state and in figures."""

from collections.abc import Sequence

import msgspec

from gpuspawner.language import gettext as _
from gpuspawner.language import ngettext
from gpuspawner.messages.scaling import may_pass, takes
from gpuspawner.messages.words import device
from gpuspawner.offers.types import Accelerator
from gpuspawner.preflight.availability import Availability, State
from gpuspawner.preflight.decision import ResourceRoom
from gpuspawner.scaling.outlook import CanScaleUp, MayScaleUp, Obstacle, WhyNoNode
from gpuspawner.scheduling.requests import CPU, MEMORY, is_device


class StateText(msgspec.Struct, frozen=True):
    """An accelerator's availability: the state in a word or two, and the figures, if any."""

    word: str
    detail: str = ""


def sharing(accelerator: Accelerator) -> str:
    """Say what other servers have of the same GPU, as plain text; empty for a whole GPU."""
    if accelerator.is_shared:
        return _("Other servers can use the same GPU and its memory at the same time.")
    if not accelerator.is_slice:
        return ""
    size = accelerator.slice_memory
    if size is None:
        return _("A slice of a GPU, with its own memory.")
    return _("A slice of a GPU, with its own {count} GB of memory.").format(count=size)


def state_text(row: Availability) -> StateText:
    """Describe an availability, as plain text that isn't escaped for HTML yet."""
    told = _state_text(row)
    if not row.in_line or row.state not in (State.FREE, State.BUSY):
        return told
    text = ngettext(
        "{detail}; {count} person is in line", "{detail}; {count} people are in line", row.in_line
    )
    return StateText(told.word, text.format(detail=told.detail, count=row.in_line))


def _state_text(row: Availability) -> StateText:
    match row.state:
        case State.FREE:
            return StateText(_("Free"), _free(row.gpus) if row.gpus else "")
        case State.BUSY:
            return _busy(row.gpus, row.short_of)
        case State.CAN_SCALE_UP:
            return StateText(_("New machine"), _takes(row.scale_up))
        case State.MAY_SCALE_UP:
            return StateText(_("Perhaps"), _("no machine is free, but one may be added"))
        case State.AWAY:
            return StateText(_("Offline"), _("its machines are out of service right now"))
        case State.ABSENT:
            return StateText(_("Not available"), _absent(row.obstacles))
        case State.LIMITED | State.WITHHELD:
            return _denied(row)
        case State.READING:
            return StateText(_("Checking"), _("still reading the cluster"))
        case State.UNKNOWN:
            return StateText(_("Unknown"), _("we can't check right now"))


def stale() -> str:
    """Say that an open form shows old figures."""
    return _("We can't refresh these figures right now.")


def login_ended() -> str:
    """Say that whoever looks at an open form isn't logged in any more; a link that leads back."""
    return _("Your login has ended. Log in again.")


def choices_changed() -> str:
    """Say that an open form has old choices."""
    return _("The choices have changed. Reload this page to see them.")


def _denied(row: Availability) -> StateText:
    from gpuspawner.messages.policies import denied_in_short  # a hub without policies lacks them

    names = {row.accelerator.key: row.accelerator.display_name} if row.accelerator else {}
    word = _("Limit reached") if row.state is State.LIMITED else _("Not offered")
    return StateText(word, denied_in_short(row.denial, names))


def _absent(obstacles: Sequence[Obstacle]) -> str:
    whys = {obstacle.why for obstacle in obstacles}
    if WhyNoNode.QUOTA in whys:
        return _("the quota at the cloud provider is used up")
    if WhyNoNode.STOCK_OUT in whys:
        return _("the cloud provider has none right now")
    if may_pass(obstacles):
        return _("no machine can be added for it right now")
    return _("no machine here can provide it")


def _takes(scale_up: CanScaleUp | MayScaleUp | None) -> str:
    usual = takes(scale_up)
    return _("takes {time} to start").format(time=usual) if usual else _("takes a few minutes")


def _free(gpus: ResourceRoom) -> str:
    if gpus.most_free < gpus.free:
        text = ngettext(
            "{count} of {total} free, at most {most} on one machine",
            "{count} of {total} free, at most {most} on one machine",
            gpus.free,
        )
    else:
        text = ngettext("{count} of {total} free", "{count} of {total} free", gpus.free)
    return text.format(count=gpus.free, total=gpus.total, most=gpus.most_free)


def _busy(gpus: ResourceRoom | None, short_of: str) -> StateText:
    if gpus is not None and gpus.most_free < gpus.asked:
        return StateText(_("In use"), _in_use(gpus))
    if not short_of:  # its files are in use by another server, for example
        text = _("{figures}, but your server can't use them right now")
        text = text if gpus else _("your server can't start right now")
        return StateText(_("In use"), text.format(figures=_free(gpus) if gpus else ""))
    if gpus is None:
        return StateText(_("Full"), _("no machine has room right now"))
    if is_device(short_of):
        text = _("{figures}, but no {resource} is free")
    elif short_of in (MEMORY, CPU):
        text = _("{figures}, but with too little memory or CPU")
    else:
        text = _("{figures}, but no machine has room right now")
    return StateText(_("Full"), text.format(figures=_free(gpus), resource=device(short_of)))


def _in_use(gpus: ResourceRoom) -> str:
    if gpus.free:
        return _free(gpus)
    if gpus.total == 0:
        return _("none is free right now")
    text = ngettext("the only one is in use", "all {count} are in use", gpus.total)
    return text.format(count=gpus.total)

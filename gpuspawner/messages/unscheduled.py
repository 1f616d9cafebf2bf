"""Why kube-scheduler has found no node for a pod, in one sentence, from its own text.

It is told only if the preflight doesn't know better: it is off, or another scheduler decides.
"""

from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.scheduling.requests import is_device
from gpuspawner.troubles.scheduler_message import ReasonKind, SchedulerReason, reasons


def why(text: str) -> str:
    """Return the sentence; "" if the text names nothing that tells a user more.

    A device comes first, then memory, then processors: the other nodes are of another kind, so
    their taints, labels and disks don't matter.
    """
    named = list(reasons(text))
    short = [it for it in named if it.kind is ReasonKind.RESOURCE]
    if short:
        return _too_little(min(short, key=_rank))
    kinds = {it.kind for it in named}
    if ReasonKind.PODS in kinds:
        return _("Every suitable machine already runs as many servers as it can.")
    if ReasonKind.DISK in kinds:
        return _("No machine can use the disk of your server right now.")
    if ReasonKind.GATES in kinds:
        return _("Your server is still held back by another part of the cluster.")
    return ""


def _rank(reason: SchedulerReason) -> tuple[int, str]:
    what = reason.resource
    return 0 if is_device(what) else 1 if what == "memory" else 2, what


def _too_little(reason: SchedulerReason) -> str:
    match reason.resource:
        case "memory":
            return _("No suitable machine has enough free memory.")
        case "cpu":
            return _("No suitable machine has enough free CPU.")
        case "ephemeral-storage":
            return _("No suitable machine has enough free disk space.")
        case resource:
            text = _("No suitable machine has enough free resources of this kind: {resource}.")
            return text.format(resource=words.device(resource))

"""What happens between the click and the server, in sentences: steps, troubles, and the end.

kube-scheduler's own reason is told only if the preflight doesn't know better: it is off, or another
scheduler decides.
"""

from gpuspawner.language import N_
from gpuspawner.language import gettext as _
from gpuspawner.messages import words
from gpuspawner.messages.causes import NOTHING, cause, way_out
from gpuspawner.messages.words import Message, so_far
from gpuspawner.offers.grant import Grant
from gpuspawner.scheduling.requests import is_device
from gpuspawner.troubles.giving_up import GivenUp, StartPhase
from gpuspawner.troubles.images import Pulled
from gpuspawner.troubles.scheduler_message import ReasonKind, SchedulerReason, reasons
from gpuspawner.troubles.steps import Stage, Step
from gpuspawner.troubles.trouble import Kind, Trouble


def step(stage: Stage, usual: float | None = None, size: int | None = None) -> Message:
    """Say what a start waits for.

    Args:
        stage: How far it is.
        usual: How long that takes, in seconds.
        size: How many bytes the image has that is being pulled.
    """
    is_brief = stage.step in _BRIEF or isinstance(stage.image, Pulled)
    return Message.of(_lead(stage, size), "" if is_brief else _takes(usual))


def still(stage: Stage, elapsed: int, usual: float | None, size: int | None) -> Message:
    """Say for how many seconds a start has been waiting for the same; see `step`."""
    if stage.step is Step.NODE_FOUND:
        return Message.of(_("The machine is getting ready for your server."), so_far(elapsed))
    return Message.of(_lead(stage, size), so_far(elapsed, _usual(usual)))


_BRIEF = (Step.QUEUED, Step.SCHEDULING, Step.NODE_FOUND, Step.RUNNING)
"""Steps that usually take no time that is worth a word."""


_LEADS = {
    Step.QUEUED: N_("Your server waits in the cluster's queue."),
    Step.SCHEDULING: N_("Looking for a machine for your server."),
    Step.NODE_STARTING: N_("A new machine is starting for you."),
    Step.NODE_FOUND: N_("Your server has a machine."),
    Step.VOLUMES: N_("Connecting your files to the machine."),
    Step.INITIALIZING: N_("Preparing your server."),
    Step.STARTING: N_("Starting your server."),
    Step.RUNNING: N_("Your server is running and will answer in a moment."),
}


def _lead(stage: Stage, size: int | None) -> str:
    if stage.step is not Step.PULLING:
        return _(_LEADS[stage.step])
    if isinstance(stage.image, Pulled):
        return _("Your server's software is on the machine.")
    if size is None:
        return _("Downloading your server's software.")
    return _("Downloading your server's software ({size}).").format(size=words.rough_size(size))


def _takes(seconds: float | None) -> str:
    usual = _usual(seconds)
    return _("This usually takes {time}.").format(time=usual) if usual else ""


def _usual(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return _("less than a minute") if seconds < 60 else words.minutes(seconds / 60)


def elsewhere() -> Message:
    """Say that a server gets another machine than the one whose GPUs have failed before."""
    return Message.of(_("Your server gets another machine than the one whose GPUs failed."))


def perhaps_the_same() -> Message:
    """Say that a server may get the machine whose GPUs have failed before."""
    return Message.of(
        _("Your server may get the machine whose GPUs failed: no other surely has room.")
    )


def hitch(trouble: Trouble, elapsed: int = 0) -> Message:
    """Say what goes wrong and may still pass; *elapsed* is for how many seconds, if that's long."""
    return Message.of(cause(trouble), _("Still trying."), so_far(elapsed) if elapsed else "")


def failure(failed: GivenUp, grant: Grant = NOTHING) -> Message:
    """Say why a start is given up, and what helps; *grant* is what the server was to get."""
    if failed.cause is None or failed.cause.kind is Kind.UNKNOWN:
        return Message.of(_late(failed.late), words.retry_or_tell())
    if failed.cause.kind is Kind.UNSCHEDULABLE:
        said = why_unscheduled(failed.cause.text)
        return Message.of(_late(StartPhase.SCHEDULED), said, words.retry_or_tell())
    lead = cause(failed.cause, grant)
    return Message.of(lead, _last_words(failed.cause), way_out(failed.cause))


def unexplained() -> Message:
    """Say that a start has failed by an error that isn't meant for users."""
    return Message.of(_("Your server couldn't start because of an error."), words.tell())


def last_start_failed(why: str) -> str:
    """Say on the form why the last start failed."""
    return _("Your last start failed: {why}").format(why=why)


def _late(phase: StartPhase | None) -> str:
    match phase:
        case StartPhase.QUEUED:
            return _("Your server's turn in the cluster's queue didn't come in time.")
        case StartPhase.SCHEDULED:
            return _("The cluster didn't find a machine for your server in time.")
        case StartPhase.PREPARED:
            return _("Your files or your server's software didn't arrive in time.")
        case StartPhase.ANSWERED:
            return _("Your server is running but doesn't answer.")
        case _:
            return _("Your server didn't start in time.")


def _last_words(trouble: Trouble) -> str:
    """Quote the last line of a container that ended by itself; the check's own says nothing."""
    if trouble.exit is None or trouble.kind not in (Kind.CRASHED, Kind.ENDED):
        return ""
    return words.last_words(trouble.exit.last_words)


def why_unscheduled(text: str) -> str:
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

"""Why a server can't start, and what the user can have instead."""

from collections.abc import Sequence

from gpuspawner.kube.quoting import one_line
from gpuspawner.language import all_of, listed_apart, ngettext, one_of, sentences
from gpuspawner.language import gettext as _
from gpuspawner.messages import kueue, words
from gpuspawner.messages.scaling import may_pass, no_more
from gpuspawner.messages.words import Message
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.user_options import GPURequest
from gpuspawner.preflight.decision import (
    Alternative,
    Apart,
    Difference,
    HeldBy,
    Reason,
    Refuse,
    ResourceRoom,
)
from gpuspawner.preflight.rejection import OverQuota

_MOST_NAMED = 3
PODS = "pods"
"""A resource that Kubernetes counts on each node, and whose name users don't know."""


def refusal(decision: Refuse) -> Message:
    """Say what the user asked for, what there is, and the nearest alternatives."""
    return Message.of(why(decision), no_more(decision.obstacles), _way_out(decision))


def refusal_above_buttons(decision: Refuse) -> Message:
    """As `refusal`, if buttons show the alternatives."""
    return Message.of(why(decision), no_more(decision.obstacles))


def profile_refused(decision: Refuse, profile: str, others: Sequence[str]) -> Message:
    """Explain why a profile can't start, and name others that would, nearest first.

    All are named as `profile_named` does; *profile* is empty if there are no profiles.
    """
    if not profile:
        return refusal(decision)
    lead = _profile_lead(decision, profile)
    if not others:
        return Message.of(lead, refusal(decision).text)
    if len(others) == 1:
        instead = _("You can start {profile} instead.").format(profile=others[0])
    else:
        text = _("You can start one of these instead: {profiles}.")
        instead = text.format(profiles=listed_apart(others))
    return Message.of(lead, why(decision), no_more(decision.obstacles), instead)


def profile_refused_above_buttons(decision: Refuse, profile: str) -> Message:
    """As `profile_refused`, if buttons name the others."""
    lead = _profile_lead(decision, profile)
    return Message.of(lead, why(decision), no_more(decision.obstacles))


def _profile_lead(decision: Refuse, profile: str) -> str:
    match decision.reason:
        case Reason.IMPOSSIBLE if not may_pass(decision.obstacles):
            text = _("{profile} can't start on any machine here.")
        case Reason.LIMIT_RANGE | Reason.NOT_ADMITTED:
            text = _("{profile} can't start.")
        case Reason.QUOTA if decision.queue or _is_for_good(decision):
            text = _("{profile} can't start.")
        case _:
            text = _("{profile} can't start right now.")
    return text.format(profile=profile)


def _is_for_good(decision: Refuse) -> bool:
    """Whether a quota rejects the server no matter what others use."""
    cause = decision.rejection.cause if decision.rejection else None
    return isinstance(cause, OverQuota) and not cause.may_be_freed


def denied(request: GPURequest) -> Message:
    """Say that a choice isn't offered to this user."""
    if (asked := request.accelerator) is None:
        return Message.of(_("This choice isn't available."), words.ask())
    lead = _("{accelerator} isn't available with these options.").format(accelerator=asked)
    return Message.of(lead, words.ask())


def misconfigured() -> Message:
    """Say that the hub's configuration, or a function in it, keeps a server from starting."""
    lead = _("Your server can't start because of an error in the hub's configuration.")
    return Message.of(lead, words.tell())


def already_started() -> Message:
    """Say that another request has already started the server."""
    return Message.of(_("Your server is already starting."))


def unreachable() -> Message:
    """Say that the hub has no configuration for a cluster, or that its API server is silent."""
    lead = _("The hub can't start servers right now: it isn't connected to a cluster.")
    return Message.of(lead, words.retry_or_tell())


def why(decision: Refuse) -> str:
    """Return the first part of a refusal: the reason."""
    if decision.rejection is not None:
        from gpuspawner.messages import admission  # many hubs never need it

        return admission.why(decision.rejection, decision.grant)
    if decision.queue is not None:
        return kueue.why(decision.queue)
    if decision.apart is not None:
        return _apart(decision.grant, decision.apart)
    match decision.reason:
        case Reason.BUSY if decision.in_line and not (decision.shortage or decision.held):
            return _in_line(decision.in_line)
        case Reason.BUSY:
            return _busy(decision)
        case Reason.TRY_AGAIN:
            return _("Other servers are starting right now and may take the space yours needs.")
        case Reason.TAKEN:
            return _("Just before your server started, someone else took the room that it needs.")
        case Reason.AWAY:
            return _(
                "All machines that could hold your server are offline right now, perhaps for "
                "maintenance."
            )
        case _:
            return _impossible(decision)


def _apart(grant: Grant, apart: Apart) -> str:
    """Say where the files are, and where there is room, or could be."""
    text = (
        _("There is room for {what} {there}, but your files are {here}.")
        if apart.is_free
        else _("There can be room for {what} only {there}, but your files are {here}.")
    )
    what = words.gpus(grant) if grant.accelerator else _("your server")
    here, there = (_place(names, apart) for names in (apart.files, apart.room))
    rule = _("A server runs where its files are.")
    return sentences(text.format(what=what, here=here, there=there), rule)


def _place(names: Sequence[str], apart: Apart) -> str:
    """Name zones or machines; a user can't tell many machines apart."""
    if not names:
        return _("where no machine is")
    if apart.are_zones:
        text = ngettext("in zone {names}", "in zones {names}", len(names))
    elif len(names) <= _MOST_NAMED:
        text = ngettext("on machine {names}", "on machines {names}", len(names))
    else:
        text = _("on several machines")
    return text.format(names=all_of([one_line(it) for it in names]))


def _in_line(count: int) -> str:
    text = ngettext(
        "{count} person is waiting in line for the machines that your server needs.",
        "{count} people are waiting in line for the machines that your server needs.",
        count,
    )
    return text.format(count=count)


def _busy(decision: Refuse) -> str:
    grant, gpus, shortage = decision.grant, decision.gpus, decision.shortage
    if decision.held is HeldBy.OWN:
        return _("Your files are in use by another server of yours.")
    if decision.held is not None:
        return _("Your server's files are in use, and only one server can use them at a time.")
    if gpus is not None and gpus.most_free < gpus.asked:
        return _gpus_busy(grant, gpus)
    if shortage is None:
        return _("No machine can take your server right now.")
    if shortage.resource == PODS:
        return _("{machines} are full right now.").format(machines=_machines(grant))
    if grant.accelerator is None:
        text = _("Your server needs {asked}, but no machine has that much free.")
    else:
        text = ngettext(
            "{gpus} is free right now, but not together with the {asked} that your server needs.",
            "{gpus} are free right now, but not together with the {asked} that your server needs.",
            grant.gpus,
        )
    most = words.most(shortage.resource, shortage.most_free) or _(
        "None is left with your other choices."
    )
    return sentences(_needed(text, grant, shortage), most)


def _gpus_busy(grant: Grant, gpus: ResourceRoom) -> str:
    asked = words.gpus(grant)
    name = grant.accelerator.display_name if grant.accelerator else ""
    if gpus.free == 0:
        if gpus.total == 0:
            return _("No {name} is free right now.").format(name=name)
        text = ngettext(
            "The one {name} is in use right now.",
            "No {name} is free right now: all {count} are in use.",
            gpus.total,
        )
        return text.format(name=name, count=gpus.total)
    if gpus.free < gpus.asked and gpus.most_free == gpus.free:
        text = ngettext(
            "You asked for {gpus}, but only {count} is free right now.",
            "You asked for {gpus}, but only {count} are free right now.",
            gpus.free,
        )
        return text.format(gpus=asked, count=gpus.free)
    text = ngettext(
        "You asked for {gpus}. {count} is free right now, but at most {most} of them on one "
        "machine, and a server runs on one machine.",
        "You asked for {gpus}. {count} are free right now, but at most {most} of them on one "
        "machine, and a server runs on one machine.",
        gpus.free,
    )
    return text.format(gpus=asked, count=gpus.free, most=gpus.most_free)


def _impossible(decision: Refuse) -> str:
    grant, gpus, shortage = decision.grant, decision.gpus, decision.shortage
    if decision.one_share:
        text = _("{machines} share their GPUs, and give a server only one share of a GPU.")
        return text.format(machines=_machines(grant))
    if gpus is None and shortage is None and not decision.candidates:
        return _no_machine(decision)
    if gpus is not None and gpus.most == 0:
        return _no_machine(decision)
    if decision.is_reserved:
        text = _(
            "{machines} that are large enough are reserved; only an administrator can let your "
            "server use them."
        )
        said = text.format(machines=_machines(grant))
        if shortage is None or (gpus is not None and gpus.most < gpus.asked):
            return said
        return sentences(said, words.most(shortage.resource, shortage.most))
    if gpus is not None and gpus.most < gpus.asked:
        text = _("No machine here has {gpus}; the most is {most}.")
        return text.format(gpus=words.gpus(grant), most=gpus.most)
    if shortage is None:
        return _(
            "Your choices aren't too large, but a rule of the cluster keeps your server off "
            "every machine."
        )
    if shortage.resource == PODS or shortage.most >= shortage.asked:
        return _("No machine here can hold a server with all your choices together.")
    text = (
        _("No machine here has {gpus} together with the {asked} that your server needs.")
        if grant.accelerator
        else _("No machine here has the {asked} that your server needs.")
    )
    most = words.most(shortage.resource, shortage.most)
    return sentences(_needed(text, grant, shortage), most)


def _no_machine(decision: Refuse) -> str:
    """Explain that the server may run on no machine, or that no such machine has its GPU."""
    if decision.taints:
        text = _("{machines} are reserved; only an administrator can let your server use them.")
        return text.format(machines=_machines(decision.grant))
    if name := _model(decision.grant):
        return _("There is no {name} here right now.").format(name=name)
    return _("There is no machine here for this server right now.")


def _needed(text: str, grant: Grant, shortage: ResourceRoom) -> str:
    """Name the amount that the server requests, which may be another than the user chose."""
    asked = words.amount(shortage.resource, shortage.asked)
    return text.format(gpus=words.gpus(grant), asked=asked)


def _way_out(decision: Refuse) -> str:
    gpus = [it for it in decision.alternatives if it.grant.accelerator is not None]
    plain = [it for it in decision.alternatives if it.grant.accelerator is None]
    if not gpus and plain and decision.grant.accelerator is not None:
        return _("You can start without a GPU.")
    if gpus or plain:
        others = one_of([_alternative(it) for it in gpus or plain])
        if gpus and plain:
            return _("You can have {others}, or start without a GPU.").format(others=others)
        return _("You can have {others}.").format(others=others)
    if decision.held is HeldBy.OWN:
        return _("Please stop that server first.")
    if decision.rejection is not None:
        from gpuspawner.messages import admission  # as above

        return admission.way_out(decision.rejection)
    if decision.queue is not None:
        return kueue.way_out(decision.queue)
    match decision.reason:
        case Reason.IMPOSSIBLE if may_pass(decision.obstacles):
            return _("Please choose something else, or try again later.")
        case Reason.IMPOSSIBLE:
            return words.ask()
        case Reason.TRY_AGAIN:
            return words.retry()
        case _:
            return _("Please try again a little later.")


def _alternative(alternative: Alternative) -> str:
    grant = alternative.grant
    less = []
    if Difference.LESS_MEMORY in alternative.differences and grant.memory is not None:
        less.append(words.amount("memory", grant.memory))
    if Difference.LESS_CPU in alternative.differences and grant.cpu is not None:
        less.append(words.amount("cpu", grant.cpu))
    described = words.gpus(grant)
    if less:
        text = _("{gpus} with {amounts}")
        described = text.format(gpus=described, amounts=all_of(less))
    elsewhere = Difference.OTHER_ACCELERATOR in alternative.differences
    free = alternative.gpus.free if alternative.gpus and elsewhere else 0
    if not free:
        return described
    text = ngettext("{what} ({count} free)", "{what} ({count} free)", free)
    return text.format(what=described, count=free)


def _model(grant: Grant) -> str:
    """Return the accelerator's name; empty if it is only a kind of device, such as `GPU`."""
    accelerator = grant.accelerator
    if accelerator is None or accelerator.display_name == words.device(accelerator.resource):
        return ""
    return accelerator.display_name


def _machines(grant: Grant) -> str:
    if name := _model(grant):
        return _("The {name} machines").format(name=name)
    return _("The machines for this server")

"""Why a server can't start, and what the user can have instead."""

from gpuspawner.language import all_of, ngettext, one_of
from gpuspawner.language import gettext as _
from gpuspawner.messages import admission, words
from gpuspawner.messages.message import Message
from gpuspawner.policy import Denial, Grant
from gpuspawner.preflight.decision import Alternative, Difference, Reason, Refuse, Room

PODS = "pods"
"""A resource that Kubernetes counts on each node, and whose name users don't know."""


def refusal(decision: Refuse) -> Message:
    """Say what the user asked for, what there is, and the nearest alternatives."""
    return Message.of(why(decision), _way_out(decision))


def denied(denial: Denial) -> Message:
    """Say that a choice isn't offered to this user."""
    asked = denial.request.accelerator
    again = _("Please choose again.")
    if asked is None:
        return Message.of(_("This choice isn't available."), again)
    lead = _("{accelerator} isn't available with these options.").format(accelerator=asked)
    return Message.of(lead, again, _ask())


def misconfigured() -> Message:
    """Say that the hub's configuration, or a function in it, keeps a server from starting."""
    return Message.of(
        _("Your server can't start because of an error in the hub's configuration."),
        _("Please tell your administrator. The hub's log has the details."),
    )


def already_started() -> Message:
    """Say that another request has already started the server."""
    return Message.of(_("Your server is already starting."))


def unreachable() -> Message:
    """Say that the hub has no configuration for reaching a cluster."""
    return Message.of(
        _("The hub can't start servers right now: it isn't connected to a cluster."),
        _("Please try again later, or tell your administrator."),
    )


def why(decision: Refuse) -> str:
    """Return the first sentence of a refusal: the reason."""
    if decision.rejection is not None:
        return admission.why(decision.rejection, decision.grant)
    name = _name(decision.grant)
    match decision.reason:
        case Reason.BUSY:
            return _busy(decision)
        case Reason.TRY_AGAIN if name:
            text = _("Other servers are starting right now, and may take the last {name}.")
        case Reason.TRY_AGAIN:
            text = _("Other servers are starting right now, and may take the last free space.")
        case Reason.TAKEN if name:
            text = _("Someone else took the last {name} just before your server got it.")
        case Reason.TAKEN:
            text = _("Someone else took the last free space just before your server got it.")
        case Reason.AWAY if name:
            text = _("The machines with {name} are offline right now, perhaps for maintenance.")
        case Reason.AWAY:
            text = _("The machines are offline right now, perhaps for maintenance.")
        case _:
            return _impossible(decision)
    return text.format(name=name)


def _busy(decision: Refuse) -> str:
    grant, gpus, shortage = decision.grant, decision.gpus, decision.shortage
    if gpus is not None and gpus.most_free < gpus.asked:
        return _gpus_busy(grant, gpus)
    name = _name(grant)
    if shortage is None or shortage.resource == PODS:
        full = _("The machines with {name} are full right now.")
        return full.format(name=name) if name else _("The machines are full right now.")
    if grant.accelerator is None:
        text = _("No machine has {asked} free right now; the most is {most}.")
    else:
        text = ngettext(
            "{gpus} is free right now, but not together with {asked}; the most is {most}.",
            "{gpus} are free right now, but not together with {asked}; the most is {most}.",
            grant.gpus,
        )
    return text.format(
        gpus=words.gpus(grant),
        asked=words.amount(shortage.resource, shortage.asked),
        most=words.amount(shortage.resource, shortage.most_free),
    )


def _gpus_busy(grant: Grant, gpus: Room) -> str:
    asked, name = words.gpus(grant), _name(grant)
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
    name = _name(grant)
    if gpus is not None and gpus.most == 0:
        if decision.taints:
            return _("This hub can't use the {name} machines.").format(name=name)
        return _("No machine here has {name} right now.").format(name=name)
    if gpus is not None and gpus.most < gpus.asked:
        text = _("No machine here has {gpus}; the most is {most}.")
        return text.format(gpus=words.gpus(grant), most=gpus.most)
    if shortage is not None and shortage.resource != PODS and shortage.most < shortage.asked:
        text = (
            _("No machine with {name} has {asked}; the most is {most}.")
            if name
            else _("No machine here has {asked}; the most is {most}.")
        )
        asked = words.amount(shortage.resource, shortage.asked)
        most = words.amount(shortage.resource, shortage.most)
        return text.format(name=name, asked=asked, most=most)
    text = _("No machine here can provide {gpus} with these options.")
    return text.format(gpus=words.gpus(grant))


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
    if decision.rejection is not None:
        return admission.way_out(decision.rejection)
    match decision.reason:
        case Reason.IMPOSSIBLE:
            return _ask()
        case Reason.TRY_AGAIN:
            return _("Please try again in a few seconds.")
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


def _name(grant: Grant) -> str:
    """Return the accelerator's name; empty for none."""
    return grant.accelerator.display_name if grant.accelerator else ""


def _ask() -> str:
    return _("Please ask your administrator if you need it.")

"""Why a server does not start, and what can be had instead."""

from gpuspawner.messages import admission, words
from gpuspawner.messages.message import Message
from gpuspawner.policy import Denial, Grant
from gpuspawner.preflight.decision import Alternative, Difference, Reason, Refuse, Room

PODS = "pods"
"""What Kubernetes counts on a machine beside its resources: no word for people."""

ASK = "Please ask your administrator if you need it."


def refusal(decision: Refuse) -> Message:
    """What was asked, what there is right now, and the nearest things that fit."""
    return Message.of(why(decision), _way_out(decision))


def denied(denial: Denial) -> Message:
    """A choice that this person may not have, whatever is free."""
    asked = denial.request.accelerator
    if asked is None:
        return Message.of("This choice is not on offer.", "Please choose again.")
    lead = f"{asked} is not on offer in this way."
    return Message.of(lead, "Please choose again.", ASK)


def misconfigured() -> Message:
    """A choice that the hub's own configuration stands in the way of."""
    return Message.of(
        "This choice cannot be started: something in the hub's settings contradicts it.",
        "Please tell your administrator; the hub's log says what it is.",
    )


def already_started() -> Message:
    """Another request for the same server came first."""
    return Message.of("Your server has been started already.", "Its page is on its way.")


def unreachable() -> Message:
    """Nothing can start: the hub does not know where the cluster is."""
    return Message.of(
        "No server can be started at the moment: the hub cannot reach the cluster.",
        "Please try again later, or tell your administrator.",
    )


def why(decision: Refuse) -> str:
    """The first sentence of a refusal."""
    if decision.rejection is not None:
        return admission.why(decision.rejection, decision.grant)
    match decision.reason:
        case Reason.BUSY:
            return _busy(decision)
        case Reason.TRY_AGAIN:
            return f"Others are starting right now, and {_last(decision.grant)} may go to them."
        case Reason.TAKEN:
            return f"Somebody else took {_last(decision.grant)} just before your server got it."
        case Reason.AWAY:
            return f"{_machines(decision.grant)} are away right now, for maintenance perhaps."
        case _:
            return _impossible(decision)


def _busy(decision: Refuse) -> str:
    gpus, shortage = decision.gpus, decision.shortage
    if gpus is not None and gpus.most_free < gpus.asked:
        return _gpus_busy(decision.grant, gpus)
    if shortage is None or shortage.resource == PODS:
        return f"{_machines(decision.grant)} are full right now."
    most = words.amount(shortage.resource, shortage.most_free)
    asked = words.amount(shortage.resource, shortage.asked)
    if decision.grant.accelerator is None:
        return f"No machine has {asked} free right now; the most is {most}."
    free = f"{words.gpus(decision.grant)} {_are(decision.grant.gpus)} free right now"
    return f"{free}, but not together with {asked}; the most beside them is {most}."


def _gpus_busy(grant: Grant, gpus: Room) -> str:
    name = _name(grant)
    if gpus.free == 0:
        if gpus.total == 1:
            return f"The one {name} is in use right now."
        count = f": all {gpus.total} are in use" if gpus.total else ""
        return f"No {name} is free right now{count}."
    asked = f"You asked for {words.gpus(grant)}"
    free = f"{gpus.free} {_are(gpus.free)} free right now"
    if gpus.free < gpus.asked and gpus.most_free == gpus.free:
        return f"{asked}, and {free}."
    where = f"at most {gpus.most_free} of them on one machine"
    return f"{asked}. {free[0].upper()}{free[1:]}, but {where}, and a server runs on one machine."


def _impossible(decision: Refuse) -> str:
    grant, gpus, shortage = decision.grant, decision.gpus, decision.shortage
    if gpus is not None and gpus.most == 0:
        if decision.taints:
            return f"{_machines(grant)} do not take servers from here."
        return f"There is no {_name(grant)} here at the moment."
    if gpus is not None and gpus.most < gpus.asked:
        return f"No machine here has {words.gpus(grant)}; the most is {gpus.most}."
    if shortage is not None and shortage.resource != PODS and shortage.most < shortage.asked:
        kind = f"No machine with {_name(grant)}" if grant.accelerator else "No machine here"
        asked = words.amount(shortage.resource, shortage.asked)
        return f"{kind} has {asked}; the most is {words.amount(shortage.resource, shortage.most)}."
    return f"No machine here can hold {words.gpus(grant)} as you asked for it."


def _way_out(decision: Refuse) -> str:
    gpus = [it for it in decision.alternatives if it.grant.accelerator is not None]
    plain = any(it.grant.accelerator is None for it in decision.alternatives)
    if gpus:
        others = words.one_of([_alternative(it) for it in gpus])
        return f"You can have {others}{', or start without a GPU' if plain else ''}."
    if plain and decision.grant.accelerator is not None:
        return "You can start without a GPU."
    if plain:
        return f"You can have {words.one_of([_alternative(it) for it in decision.alternatives])}."
    if decision.rejection is not None:
        return admission.way_out(decision.rejection)
    match decision.reason:
        case Reason.IMPOSSIBLE:
            return ASK
        case Reason.TRY_AGAIN:
            return "Please try again in a few seconds."
        case _:
            return "Please try again a little later."


def _alternative(alternative: Alternative) -> str:
    grant = alternative.grant
    parts = [words.gpus(grant)]
    if Difference.LESS_MEMORY in alternative.differences and grant.memory is not None:
        parts.append(words.amount("memory", grant.memory))
    if Difference.LESS_CPU in alternative.differences and grant.cpu is not None:
        parts.append(words.amount("cpu", grant.cpu))
    described = f"{parts[0]} with {' and '.join(parts[1:])}" if parts[1:] else parts[0]
    elsewhere = Difference.OTHER_ACCELERATOR in alternative.differences
    free = alternative.gpus.free if alternative.gpus and elsewhere else 0
    return f"{described} ({free} free)" if free else described


def _name(grant: Grant) -> str:
    return grant.accelerator.display_name if grant.accelerator else "GPU"


def _machines(grant: Grant) -> str:
    return f"The machines with {_name(grant)}" if grant.accelerator else "The machines"


def _last(grant: Grant) -> str:
    return f"the last {_name(grant)}" if grant.accelerator else "the last place"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"

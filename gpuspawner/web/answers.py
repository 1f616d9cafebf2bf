"""The endpoints' answers, as plain data for JSON."""

import msgspec
from msgspec.structs import asdict, replace

from gpuspawner import messages
from gpuspawner.gates.accelerators import Accelerators
from gpuspawner.gates.preview import Found
from gpuspawner.kube.objects import Manifest
from gpuspawner.messages import kueue
from gpuspawner.messages.starts import preview
from gpuspawner.offers.grant import Grant
from gpuspawner.offers.offers import Offers
from gpuspawner.offers.options import FieldError
from gpuspawner.offers.user_options import user_options
from gpuspawner.preflight.alternatives import request_for
from gpuspawner.preflight.availability import Availability, State, Trials
from gpuspawner.preflight.decision import Alternative, Decision, Refuse, Start, Wait
from gpuspawner.preflight.kueue import Closed
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.runtime import Runtime
from gpuspawner.scaling.outlook import CannotScaleUp
from gpuspawner.scaling.pools import DeclaredPool
from gpuspawner.scheduling.verdicts import Subject
from gpuspawner.start.policing import Entitlement
from gpuspawner.start.refusal import Refusal
from gpuspawner.web.largest_fit import LargestFits, largest_fits

JSON = dict[str, object]


async def states(accelerators: Accelerators) -> JSON:
    """Return the availability of each accelerator, and last that of servers without one."""
    return states_of(
        accelerators, await accelerators.policing.entitlement(), await accelerators.stock_pod()
    )


def states_of(accelerators: Accelerators, entitlement: Entitlement, stock: Manifest | None) -> JSON:
    """As `states`, for what policies leave and for KubeSpawner's pod, both known already."""
    running = accelerators.runtime
    builder, rows = accelerators.survey(entitlement, stock)
    stock, rules, later = builder.stock, builder.rules, builder.later
    trials = Trials(builder.offers, stock, rules, later) if stock else None
    pod = accelerators.propose(Grant(), stock, later) if stock else None
    return {
        "accelerators": [_row(row, running, trials) for row in rows],
        "queue": _queue(running, pod) if pod else None,
    }


def _queue(running: Runtime, pod: Proposal) -> JSON | None:
    """Return what a pod's queue says; the version changes if decisions may."""
    found = running.preflight.decider.queue_now(pod)
    if found is None:
        return None
    place, quotas = found
    if isinstance(place, Closed):
        message, version = kueue.why(place), hash((place, quotas))
    else:
        message, version = kueue.decides(place).text, hash(quotas)
    return {"name": place.queue, "message": message, "version": str(version)}


def _row(row: Availability, running: Runtime, trials: Trials | None) -> JSON:
    words = messages.state_text(row)
    largest = _largest(row, running, trials) if trials else None
    return {
        "accelerator": row.accelerator.key if row.accelerator else None,
        "state": row.state.value,
        "word": words.word,
        "detail": words.detail,
        "gpus": asdict(row.gpus) if row.gpus else None,
        "left": row.left,
        "images": sorted(row.at_hand),
        "machines": msgspec.to_builtins(largest) if largest else None,
    }


def _largest(row: Availability, running: Runtime, trials: Trials) -> LargestFits | None:
    """Return what rules choices out; None if a node can still come, or if nothing is known."""
    smallest = trials.smallest(row.accelerator)
    if row.state not in (State.FREE, State.BUSY) or trials.is_open(smallest):
        return None
    found, pod = largest_fits(running.view.state, trials, row.accelerator), trials.pod(smallest)
    if row.state is State.BUSY or found is None or pod is None:
        return found
    # Nobody has asked yet: the smallest server needs no node to come, but a larger one may. Who
    # else waits for that node takes it, but it is a machine that has what is chosen.
    declared = DeclaredPool.of(row.accelerator)
    outlook = running.preflight.to_come.outlook(None, Subject(pod), declared)
    return found if isinstance(outlook, CannotScaleUp) else replace(found, whole=None)


def decision(found: Found, offers: Offers) -> JSON:
    """Return the decision that a start would get, with its message and alternatives."""
    match found:
        case Start() | Wait() | Refuse():
            return _decided(found, offers)
        case Refusal():
            return {"decision": "refuse", "reason": found.slug, "message": found.text}
        case _:
            return _invalid(found)


def _decided(found: Decision, offers: Offers) -> JSON:
    alternatives = found.alternatives if isinstance(found, Refuse) else ()
    return {
        "decision": type(found).__name__.lower(),
        "reason": found.reason.value if isinstance(found, Refuse) else None,
        "message": preview(found).text,
        "queue": found.queue.queue if isinstance(found, Start) and found.queue else None,
        "alternatives": [_alternative(it, offers) for it in alternatives],
    }


def _alternative(alternative: Alternative, offers: Offers) -> JSON:
    words = messages.button(alternative)
    chosen = user_options(request_for(alternative.grant, offers))
    return {"options": chosen, "label": words.label, "details": list(words.details)}


def _invalid(errors: tuple[FieldError, ...]) -> JSON:
    return {
        "decision": "refuse",
        "reason": "invalid-options",
        "message": messages.correction(errors).text,
        "errors": [asdict(error) for error in errors],
    }

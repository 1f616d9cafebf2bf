"""What administrators read in the hub's log: one line, with the terms of Kubernetes."""

from gpuspawner.cluster.health import Forbidden, Health, Live, Reading, Stale, Unreachable
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Overruled,
    Refuse,
    Start,
    UnknownRules,
    ViewNotLive,
    Wait,
)

UNCHECKED = "Until then servers start without being checked."


def explain_health(health: Health) -> str:
    """How far the view of the cluster can be trusted, and what to do where it cannot."""
    match health:
        case Live(age):
            return f"The cluster is in view; last confirmed {age:.0f} s ago."
        case Reading(seconds):
            return f"Still reading the cluster, for {seconds:.0f} s now. {UNCHECKED}"
        case Stale(age, why):
            return (
                f"The view of the cluster is stale: nothing was confirmed for {age:.0f} s ({why}). "
                f"It is being retried. {UNCHECKED}"
            )
        case Forbidden(kinds, text):
            return (
                f"The API server does not let the hub watch {' and '.join(kinds)}; its service "
                "account needs get, list and watch on them in the whole cluster "
                f"(helm-values/rbac.yaml). It is being retried. {UNCHECKED} It said: {text}"
            )
        case Unreachable(text):
            return f"The API server cannot be reached: {text}. It is being retried. {UNCHECKED}"


def explain_unknown(decision: Start) -> tuple[str, ...]:
    """Why it could not be told whether a server that starts has room."""
    lines = []
    for note in decision.notes:
        match note:
            case UnknownRules(facts):
                lines.append(f"Room for the pod is unknown: {'; '.join(facts)}")
            case ViewNotLive(health):
                lines.append(f"Room for the pod is unknown. {explain_health(health)}")
            case AfterPreemption() | Overruled():
                pass
    return tuple(lines)


def explain_refusal(decision: Refuse) -> str:
    """Why a pod was not created, in kube-scheduler's words, with the taints that it leaves out."""
    grant = decision.grant
    asked = f"{grant.gpus} × {grant.accelerator.key}" if grant.accelerator else "no accelerator"
    taints = "".join(
        f"; {taint.nodes} node(s) have the taint {taint.key}={taint.value}:{taint.effect}, which "
        "the pod does not tolerate"
        for taint in decision.taints
    )
    said = decision.rejection.text if decision.rejection else decision.scheduler_message
    return f"Refused ({decision.reason}; {asked}): {said}{taints}"


def explain_overruled(decision: Start | Wait) -> tuple[str, ...]:
    """What would have been refused, were ``GPUSpawner.preflight`` not ``"warn"``."""
    if isinstance(decision, Wait):
        return ()
    refusals = [note.refusal for note in decision.notes if isinstance(note, Overruled)]
    return tuple(explain_refusal(refusal) for refusal in refusals)

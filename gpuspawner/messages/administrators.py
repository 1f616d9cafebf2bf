"""Lines for administrators in the hub's log, in the terms of Kubernetes and always in English."""

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

UNCHECKED = "Until then, servers start unchecked."


def explain_health(health: Health) -> str:
    """Describe the health of the view, with what to do if the view isn't live."""
    match health:
        case Live(age):
            return f"The view of the cluster is live; last confirmed {age:.0f} s ago."
        case Reading(seconds):
            return f"The hub is still reading the cluster, for {seconds:.0f} s so far. {UNCHECKED}"
        case Stale(age, why):
            return (
                f"The view of the cluster is stale: last confirmed {age:.0f} s ago ({why}). "
                f"The hub keeps trying. {UNCHECKED}"
            )
        case Forbidden(kinds, text):
            return (
                f"The API server doesn't let the hub watch {' and '.join(kinds)}. "
                "The hub's service account needs list and watch on them in the whole cluster "
                f"(helm-values/rbac.yaml). The hub keeps trying. {UNCHECKED} "
                f"The API server said: {text}"
            )
        case Unreachable(text):
            return f"The hub can't reach the API server: {text}. The hub keeps trying. {UNCHECKED}"


def explain_unknown(decision: Start) -> tuple[str, ...]:
    """Explain why it is unknown whether a server that starts has room."""
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
    """Explain a refusal in kube-scheduler's words, with the taints that these leave out."""
    grant = decision.grant
    asked = f"{grant.gpus} × {grant.accelerator.key}" if grant.accelerator else "no accelerator"
    taints = "".join(
        f"; {taint.nodes} node(s) have the taint {taint.key}={taint.value}:{taint.effect}, which "
        "the pod doesn't tolerate"
        for taint in decision.taints
    )
    said = decision.rejection.text if decision.rejection else decision.scheduler_message
    return f"Refused ({decision.reason}; {asked}): {said}{taints}"


def explain_overruled(decision: Start | Wait) -> tuple[str, ...]:
    """Explain the refusals that ``GPUSpawner.preflight = "warn"`` overrules."""
    if isinstance(decision, Wait):
        return ()
    refusals = [note.refusal for note in decision.notes if isinstance(note, Overruled)]
    return tuple(explain_refusal(refusal) for refusal in refusals)

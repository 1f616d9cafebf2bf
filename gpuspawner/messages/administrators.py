"""Lines for administrators in the hub's log, in the terms of Kubernetes and always in English."""

from gpuspawner.cluster.log import explain_health
from gpuspawner.preflight.decision import (
    AfterPreemption,
    Overruled,
    Refuse,
    Start,
    TaintedNodes,
    UnknownRules,
    ViewNotLive,
    Wait,
)


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
    said = decision.rejection.text if decision.rejection else decision.scheduler_message
    if decision.taints:
        said = "; ".join(filter(None, (said.rstrip("."), *map(_tainted, decision.taints))))
    return f"Refused ({decision.reason}; {asked}): {said}"


def explain_overruled(decision: Start | Wait) -> tuple[str, ...]:
    """Explain the refusals that ``GPUSpawner.preflight = "warn"`` overrules."""
    if isinstance(decision, Wait):
        return ()
    refusals = [note.refusal for note in decision.notes if isinstance(note, Overruled)]
    return tuple(explain_refusal(refusal) for refusal in refusals)


def _tainted(taint: TaintedNodes) -> str:
    """Name a taint as kubectl writes it: ``key:effect`` if it has no value."""
    key = f"{taint.key}={taint.value}" if taint.value else taint.key
    return (
        f"{taint.nodes} node(s) have the taint {key}:{taint.effect}, which the pod doesn't tolerate"
    )

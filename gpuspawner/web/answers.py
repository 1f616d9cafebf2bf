"""What is answered, as plain data for JSON."""

from dataclasses import asdict
from typing import Any

from gpuspawner import messages
from gpuspawner.availability import Availability, State, Trials
from gpuspawner.machines import machines
from gpuspawner.messages.preview import preview
from gpuspawner.offers import Offers
from gpuspawner.options import FieldError, user_options
from gpuspawner.policy import Denial
from gpuspawner.preflight.alternatives import asked_for
from gpuspawner.preflight.decision import Alternative, Decision, Refuse, Start, Wait
from gpuspawner.scheduling import ClusterState

JSON = dict[str, object]


async def states(spawner: Any) -> JSON:
    """How it stands with each accelerator on offer, and at last with servers without one.

    Args:
        spawner: A GPUSpawner.
    """
    asking, rows = await spawner.survey()
    trials = Trials(asking.offers, asking.stock, asking.rules) if asking.stock else None
    state = spawner.cluster_state()
    return {"accelerators": [_row(row, state, trials) for row in rows]}


def _row(row: Availability, state: ClusterState, trials: Trials | None) -> JSON:
    words = messages.standing(row)
    # Where a node can still come, or nothing is known, no choice is out of question.
    known = row.state in (State.FREE, State.BUSY) and trials is not None
    largest = machines(state, trials, row.accelerator) if known and trials else None
    return {
        "accelerator": row.accelerator.key if row.accelerator else None,
        "state": row.state.value,
        "word": words.word,
        "detail": words.detail,
        "gpus": asdict(row.gpus) if row.gpus else None,
        "machines": asdict(largest) if largest else None,
    }


async def decision(spawner: Any, raw: object, server_name: str) -> JSON:
    """Whether options could start at this moment; nothing is kept for whoever asks.

    Args:
        spawner: A GPUSpawner of the owner's.
        raw: The options, as a REST body has them.
        server_name: What server is asked about; the spawner may be of another.
    """
    asking, found = await spawner.preview(raw, server_name)
    match found:
        case Start() | Wait() | Refuse():
            return _decided(found, asking.offers)
        case Denial():
            message = messages.denied(found).text
            return {"decision": "refuse", "reason": found.reason.value, "message": message}
        case _:
            return _invalid(found)


def _decided(found: Decision, offers: Offers) -> JSON:
    alternatives = found.alternatives if isinstance(found, Refuse) else ()
    return {
        "decision": type(found).__name__.lower(),
        "reason": found.reason.value if isinstance(found, Refuse) else None,
        "message": preview(found).text,
        "alternatives": [_alternative(it, offers) for it in alternatives],
    }


def _alternative(alternative: Alternative, offers: Offers) -> JSON:
    words = messages.button(alternative)
    chosen = user_options(asked_for(alternative.grant, offers))
    return {"options": chosen, "label": words.label, "details": list(words.details)}


def _invalid(errors: tuple[FieldError, ...]) -> JSON:
    return {
        "decision": "refuse",
        "reason": "invalid-options",
        "message": messages.correction(errors).text,
        "errors": [asdict(error) for error in errors],
    }

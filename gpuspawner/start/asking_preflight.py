"""Ask the preflight about a start, and turn its refusals into exceptions."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace as change

from kubernetes_asyncio.client.rest import ApiException
from msgspec.structs import replace

from gpuspawner import messages, runtime
from gpuspawner.kube.quoting import one_line
from gpuspawner.messages.administrators import explain_overruled, explain_refusal
from gpuspawner.preflight.decision import (
    Decision,
    Overruled,
    Reason,
    Refuse,
    Start,
    UnknownRules,
    Wait,
    rejected,
)
from gpuspawner.preflight.dry_runs import Admission, TooManyDryRunsError
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.rejection import Of, read
from gpuspawner.start import connection
from gpuspawner.start.host import Host, log_name
from gpuspawner.start.policing import policing
from gpuspawner.start.refusal import Refusal, is_to_pass
from gpuspawner.start.source import Choice
from gpuspawner.traits import OFF, WARN
from gpuspawner.traits.trait_types import setting

PreflightMethod = Callable[[Proposal, Admission], Decision | Awaitable[Decision]]
"""Decides about a proposal, as one of the preflight's methods."""
LOST_ROOM = frozenset({Reason.TAKEN, Reason.BUSY, Reason.TRY_AGAIN})
"""Why a start fails that others were faster than."""


async def decide(
    spawner: Host, choice: Choice, question: PreflightMethod, admission: Admission
) -> Start | Wait:
    """Ask the preflight about a choice, unless ``GPUSpawner.preflight`` is ``"off"``.

    Raises:
        Refusal: The cluster can't hold the pod.
    """
    if preflight_of(spawner, choice) == OFF:
        return Start(choice.proposal.grant)
    decision = await answer(spawner, choice, question, admission)
    if not isinstance(decision, Refuse):
        return decision
    raise await refusal_of(spawner, choice, decision, admission)


def preflight_of(spawner: Host, choice: Choice) -> str:
    """Return how the preflight judges a choice: the trait, which its profile may set."""
    found: str = choice.traits.get("preflight") or setting(spawner, "preflight")
    return found


async def answer(
    spawner: Host, choice: Choice, question: PreflightMethod, admission: Admission
) -> Decision:
    """Return the preflight's decision; with ``"warn"``, a refusal becomes a start with a note.

    Raises:
        TooManyDryRunsError: Only for a preview; a start goes without a dry run.
    """
    proposal = choice.proposal
    if not spawner.gpuspawner_stock.knows_no_pod():
        proposal = change(proposal, older_stays=True)
    try:
        found = question(proposal, admission)
        decision = await found if inspect.isawaitable(found) else found
    except (Refusal, TooManyDryRunsError):
        raise
    except Exception:
        # A bug of ours must not keep users from getting servers.
        name = one_line(proposal.name)
        spawner.log.exception("The preflight failed; %s's server starts unchecked", name)
        return Start(proposal.grant, (UnknownRules(("the preflight itself failed",)),))
    if isinstance(decision, Refuse) and preflight_of(spawner, choice) == WARN:
        return Start(proposal.grant, (Overruled(decision),))
    return decision


def warn(spawner: Host, decision: Start | Wait) -> None:
    """Log a refusal that the administrator has set to warnings only."""
    for overruled in explain_overruled(decision):
        spawner.log.warning("Starting %s anyway: %s", log_name(spawner), overruled)


@asynccontextmanager
async def refusing(
    of: Of, spawner: Host, choice: Choice, admission: Admission
) -> AsyncIterator[None]:
    """Turn the API server's rejection into a refusal.

    Raises:
        Refusal: The API server rejected what was sent. Its other errors pass unchanged.
    """
    try:
        yield
    except ApiException as error:
        if (rejection := read(error.status, error.body, of)) is None:
            raise
        refuse = rejected(choice.proposal.grant, rejection)
        raise await refusal_of(spawner, choice, refuse, admission) from None


async def refusal_of(
    spawner: Host, choice: Choice, refuse: Refuse, admission: Admission
) -> Refusal:
    """Word a refusal, with what would start instead and the place in line that one could have."""
    try:
        message, on_form = await choice.explain(refuse, admission)
        decider = runtime.current(spawner).preflight.decider
        is_foretold = isinstance(decider.check(choice.proposal), Refuse)
        on_form = replace(on_form, is_foretold=is_foretold)
    except Exception:
        # The refusal is right even without alternatives.
        spawner.log.exception("Finding alternatives for %s failed", one_line(choice.proposal.name))
        message, on_form = messages.refusal(refuse), messages.OnForm.of_refusal(refuse)
    if refuse.reason is Reason.BUSY and await may_wait(spawner, choice):
        on_form = replace(on_form, place=refuse.in_line + 1)
    return Refusal(
        message, reason=refuse.reason.value, details=explain_refusal(refuse), on_form=on_form
    )


async def may_wait(spawner: Host, choice: Choice) -> bool:
    """Whether the owner of a server may wait in line for it.

    Raises:
        Refusal: The administrator's function of policies fails.
    """
    try:
        return await _may_wait(spawner, choice)
    except Exception as error:  # a refusal is right even without a line
        if is_to_pass(error):
            raise
        name = log_name(spawner)
        spawner.log.exception("Finding out whether %s may wait in line failed", name)
        return False


async def _may_wait(spawner: Host, choice: Choice) -> bool:
    current, proposal = runtime.current(spawner), choice.proposal
    if current.line is None:
        return False
    learned = current.preflight.learned
    if learned.holds_back(proposal) is None:  # the hub has just started, for example
        with suppress(TooManyDryRunsError):
            await learned.admitted(proposal, connection.admission(spawner, current.dry_runs))
    if learned.holds_back(proposal):
        return False  # Kueue's line is enough
    accelerator, rules = proposal.grant.accelerator, current.line.rules
    if not rules.allow(accelerator.key if accelerator else None, choice.profile):
        return False
    return rules.policies is None or await policing(spawner, current).applies(rules.policies)


async def offers_line(refusal: Refusal, may_wait: Callable[[], Awaitable[bool]]) -> bool:
    """Whether there may be a line for a start that was refused before it began.

    A place in a line is offered only to those who *may_wait*.
    """
    if refusal.slug == Reason.TRY_AGAIN:
        return await may_wait()
    return bool(refusal.on_form.place)

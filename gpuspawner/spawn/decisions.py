"""The preflight's answer about a start, and what becomes of a no."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from kubernetes_asyncio.client.rest import ApiException

from gpuspawner import messages
from gpuspawner.admission.dry_run import Admission
from gpuspawner.admission.rejection import Of
from gpuspawner.admission.rejection_parser import read
from gpuspawner.admission.slots import TooManyDryRunsError
from gpuspawner.messages import OnForm
from gpuspawner.policy import Grant
from gpuspawner.preflight.admitted import rejected
from gpuspawner.preflight.decision import Decision, Overruled, Refuse, Start, UnknownRules, Wait
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.quoting import one_line
from gpuspawner.spawn.host import Host
from gpuspawner.spawn.refusal import Refusal
from gpuspawner.spawn.source import Choice
from gpuspawner.traits import OFF, WARN

Question = Callable[[Proposal], Decision | Awaitable[Decision]]
"""One of the questions that the preflight answers."""


async def decide(
    spawner: Host, choice: Choice, question: Question, admission: Admission
) -> Start | Wait:
    """Ask about a choice, and go on unless the answer is a refusal.

    ``GPUSpawner.preflight`` acts here alone: ``"off"`` asks nobody, and ``"warn"`` goes on with a
    note of the refusal.

    Raises:
        Refusal: The cluster can't hold the pod.
    """
    if spawner.preflight == OFF:
        return Start(choice.proposal.grant)
    decision = await answer(spawner, choice.proposal, question)
    if not isinstance(decision, Refuse):
        return decision
    raise await _refusal(spawner, choice, decision, admission)


async def answer(spawner: Host, proposal: Proposal, question: Question) -> Decision:
    """The answer to a question, which is only noted if verdicts are warnings.

    Raises:
        TooManyDryRunsError: A preview found no turn; a start goes without.
    """
    try:
        found = question(proposal)
        decision = await found if inspect.isawaitable(found) else found
    except (Refusal, TooManyDryRunsError):
        raise
    except Exception:
        # A fault of ours is no reason for nobody to get a server.
        name = one_line(proposal.name)
        spawner.log.exception("The preflight failed; %s's server starts unchecked", name)
        return Start(proposal.grant, (UnknownRules(("the preflight itself failed",)),))
    if isinstance(decision, Refuse) and spawner.preflight == WARN:
        return Start(proposal.grant, (Overruled(decision),))
    return decision


@asynccontextmanager
async def refusing_pod(spawner: Host, choice: Choice, admission: Admission) -> AsyncIterator[None]:
    """Make a refusal of the API server's no to the pod.

    Raises:
        Refusal: It said no. If it is in trouble itself, its own error goes on.
    """
    try:
        yield
    except ApiException as error:
        if (rejection := read(error.status, error.body, Of.POD)) is None:
            raise
        refuse = rejected(choice.proposal.grant, rejection)
        raise await _refusal(spawner, choice, refuse, admission) from None


@asynccontextmanager
async def refusing_home(grant: Grant) -> AsyncIterator[None]:
    """The same for the PersistentVolumeClaim of the person's home.

    Raises:
        Refusal: As :func:`refusing_pod`.
    """
    try:
        yield
    except ApiException as error:
        if (rejection := read(error.status, error.body, Of.HOME)) is None:
            raise
        refuse = rejected(grant, rejection)
        raise _worded(refuse, messages.refusal(refuse), OnForm.of_refusal(refuse)) from None


async def _refusal(spawner: Host, choice: Choice, refuse: Refuse, admission: Admission) -> Refusal:
    try:
        message, on_form = await choice.explain(refuse, admission)
    except Exception:
        # The refusal is right even if nothing can be named instead.
        spawner.log.exception(
            "Nothing could be found for %s instead", one_line(choice.proposal.name)
        )
        message, on_form = messages.refusal(refuse), OnForm.of_refusal(refuse)
    return _worded(refuse, message, on_form)


def _worded(refuse: Refuse, message: messages.Message, on_form: OnForm) -> Refusal:
    return Refusal(
        message,
        reason=refuse.reason.value,
        status=refuse.http_status,
        details=messages.explain_refusal(refuse),
        on_form=on_form,
    )

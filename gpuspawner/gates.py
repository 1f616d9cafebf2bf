"""What the gates of a spawner share: options in, a grant or a refusal out.

Each refusal is made in one place, so that it is logged, uncounted and shown alike at every gate.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from kubernetes_asyncio.client.rest import ApiException

from gpuspawner import hub, messages, options, policy, sent
from gpuspawner.admission.reading import read as read_answer
from gpuspawner.admission.rejection import Of
from gpuspawner.admission.slots import TooManyDryRunsError
from gpuspawner.config import OFF, WARN
from gpuspawner.messages import Message, OnForm
from gpuspawner.offers import Offers
from gpuspawner.options import FieldError, GPURequest
from gpuspawner.policy import Denial, Grant, Person
from gpuspawner.preflight.admitted import rejected
from gpuspawner.preflight.ask import Ask
from gpuspawner.preflight.decision import (
    Decision,
    Overruled,
    Refuse,
    Start,
    UnknownRules,
    Wait,
)
from gpuspawner.quoting import one_line

FORM_PATIENCE = 3.0
"""How long a page waits for the first list of a hub that has just started, in seconds."""

Options = dict[str, object]
"""Options as the hub stores them: ours, and beside them an administrator's own."""

Judge = Callable[[Ask], Decision | Awaitable[Decision]]
"""One of the questions that the preflight answers."""

Tell = Callable[[Refuse], Awaitable[tuple[Message, OnForm]]]
"""Puts a refusal into words: for everywhere, and for the form that is drawn again."""


def read(spawner: Any, raw: object, person: Person, offers: Offers) -> tuple[Options, Grant]:
    """The options as they are to be stored, and what they come to for this person.

    Raises:
        Refusal: They cannot be read, or the person may not have them.
    """
    ours, theirs = split(spawner, raw)
    request = options.parse(ours, offers)
    if not isinstance(request, GPURequest):
        raise _invalid(spawner, request)
    grant = policy.decide(request, person, offers)
    if isinstance(grant, Denial):
        raise hub.refuse(spawner, messages.denied(grant), reason=grant.reason.value, status=403)
    return {**theirs, **options.user_options(request)}, grant


def requested(spawner: Any) -> object:
    """What this start was asked for, or None where nothing was said.

    Raises:
        Refusal: It cannot be read.
    """
    try:
        return sent.requested_options(spawner)
    except sent.UnreadableError as error:
        raise _invalid(spawner, (FieldError("", str(error)),)) from None


def check_bounds(spawner: Any, raw: object) -> None:
    """Check that options are small enough for everybody who is going to handle them.

    Raises:
        Refusal: They are not.
    """
    if raw == sent.TOO_MUCH or not sent.is_within_bounds(raw):
        why = f"the options are too much to read: {sent.WHY_TOO_MUCH}"
        raise _invalid(spawner, (FieldError("", why),))


def _invalid(spawner: Any, errors: tuple[FieldError, ...]) -> hub.Refusal:
    return hub.refuse(
        spawner,
        messages.correction(errors),
        reason="invalid-options",
        status=400,
        on_form=OnForm.of_errors(errors),
    )


def split(spawner: Any, raw: object) -> tuple[object, Options]:
    """Our options, and others; there may be others where administrators read options themselves."""
    ours_alone = (
        spawner.apply_user_options is apply_nothing
        and spawner.options_from_form is options.from_form
    )
    if ours_alone or not isinstance(raw, Mapping):
        return raw, {}
    theirs = {name: value for name, value in raw.items() if name not in options.NAMES}
    return {name: value for name, value in raw.items() if name not in theirs}, theirs


def apply_nothing(spawner: Any, user_options: object) -> None:
    """The hook ``apply_user_options`` where an administrator has none.

    The gates read the options; without any hook the hub warns at every start that nobody does.
    """


async def tell(decision: Refuse) -> tuple[Message, OnForm]:
    """A refusal in words, for everywhere and for the form: of what is on offer here."""
    return messages.refusal(decision), OnForm.of_refusal(decision)


async def decide(spawner: Any, ask: Ask, judge: Judge, tell: Tell = tell) -> Start | Wait:
    """Ask, and go on where the answer is not a refusal, which *tell* puts into words.

    Raises:
        Refusal: It is one.
    """
    if spawner.preflight == OFF:
        return Start(ask.grant)
    decision = await judged(spawner, ask, judge)
    if isinstance(decision, Refuse):
        raise await _refusal(spawner, decision, tell)
    return decision


async def judged(spawner: Any, ask: Ask, judge: Judge) -> Decision:
    """The answer of a judge who can ask admission; only noted where verdicts are warnings.

    Raises:
        TooManyDryRunsError: A preview found no turn; a start goes without.
    """
    try:
        answer = judge(replace(ask, admit=partial(spawner.dry_run, ask.namespace)))
        decision = await answer if inspect.isawaitable(answer) else answer
    except (hub.Refusal, TooManyDryRunsError):
        raise
    except Exception:
        # A fault of ours is no reason for nobody to get a server.
        spawner.log.exception(
            "The preflight failed; %s's server starts unchecked", one_line(ask.name)
        )
        return Start(ask.grant, (UnknownRules(("the preflight itself failed",)),))
    if isinstance(decision, Refuse) and spawner.preflight == WARN:
        return Start(ask.grant, (Overruled(decision),))
    return decision


@asynccontextmanager
async def refusing(spawner: Any, grant: Grant, of: Of, tell: Tell = tell) -> AsyncIterator[None]:
    """Make a refusal of the API server's no to what is created within.

    Raises:
        Refusal: It said no. Where it is in trouble itself its own error goes on.
    """
    try:
        yield
    except ApiException as error:
        rejection = read_answer(error.status, error.body, of)
        if rejection is None:
            raise
        raise await _refusal(spawner, rejected(grant, rejection), tell) from None


async def _refusal(spawner: Any, decision: Refuse, tell: Tell) -> hub.Refusal:
    message, on_form = await tell(decision)
    return hub.refuse(
        spawner,
        message,
        reason=decision.reason.value,
        status=decision.http_status,
        details=messages.explain_refusal(decision),
        on_form=on_form,
    )


def misconfigured(spawner: Any, why: str) -> hub.Refusal:
    """A refusal that only an administrator can help with, who finds *why* in the log."""
    return hub.refuse(spawner, messages.misconfigured(), reason="misconfigured", details=why)


def unreachable(spawner: Any) -> hub.Refusal:
    """A refusal because there is no way to the cluster."""
    return hub.refuse(spawner, messages.unreachable(), reason="unreachable")

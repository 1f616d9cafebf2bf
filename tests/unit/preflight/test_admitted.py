"""Decisions about pods that admission changes or rejects."""

from __future__ import annotations

from typing import Any

import pytest

from gpuspawner.admission.dry_runs import TooManyDryRunsError
from gpuspawner.admission.rejection import (
    Bound,
    Breach,
    Cause,
    Insecure,
    Of,
    OutOfRange,
    OverQuota,
    QuotaUncounted,
    Rejection,
    Use,
    WebhookFailed,
)
from gpuspawner.preflight.admitted import AdmittedPreflight, rejected
from gpuspawner.preflight.decision import Reason, Refuse, Start
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposal import Proposal
from tests.unit.preflight.admissions import (
    OFFERS,
    OVER,
    TAINT,
    NoAnswer,
    NoTurn,
    Scripted,
    choosing,
    preflight_on,
)
from tests.unit.preflight.worlds import (
    Instead,
    StillView,
    node,
    proposal,
)


async def instead(
    preflight: AdmittedPreflight, decision: object, what: Proposal, admission: Any
) -> list[int]:
    """Return the numbers of GPUs in the alternatives to a refused proposal."""
    assert isinstance(decision, Refuse)
    assert decision.alternatives == ()
    refusal = await preflight.with_alternatives(decision, what, Instead(OFFERS), admission)
    return [alternative.grant.gpus for alternative in refusal.alternatives]


async def test_a_toleration_that_admission_adds_turns_a_no_into_a_yes() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT]))
    what, admission = proposal("a"), Scripted(tolerations=[{"operator": "Exists"}])

    assert isinstance(preflight.check(what), Refuse)
    assert isinstance(await preflight.foretell(what, admission), Start)
    assert isinstance(await preflight.examine(what, admission), Start)
    assert isinstance(await preflight.begin(what, admission), Start)
    assert isinstance(await preflight.confirm(what, admission), Start)


async def test_a_selector_that_admission_adds_turns_a_yes_into_a_no() -> None:
    preflight = preflight_on(node("n", 1))
    what, admission = proposal("a"), Scripted(nodeSelector={"pool": "elsewhere"})

    assert isinstance(preflight.check(what), Start)
    assert isinstance(await preflight.examine(what, admission), Refuse)
    assert isinstance(await preflight.confirm(what, admission), Refuse)


async def test_a_rejected_pod_is_refused_without_rejected_alternatives() -> None:
    preflight = preflight_on(node("n", 8))
    admission = Scripted()
    admission.refused = {8, 4, 2}

    decision = await preflight.examine(choosing(8), admission)

    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.rejection) == (Reason.QUOTA, OVER)
    assert await instead(preflight, decision, choosing(8), admission) == [1, 0]


async def test_if_admission_rejects_everything_there_is_no_alternative() -> None:
    preflight = preflight_on(node("n", 8))
    admission = Scripted()
    admission.refused = {4, 2, 1, 0}

    decision = await preflight.examine(choosing(4), admission)

    assert await instead(preflight, decision, choosing(4), admission) == []


async def test_while_a_webhook_does_not_answer_nothing_else_is_offered() -> None:
    preflight = preflight_on(node("n", 8))
    what = choosing(4)
    failing = rejected(what.grant, Rejection(Of.POD, WebhookFailed("mpod.kb.io"), "no answer"))

    assert await instead(preflight, failing, what, NoAnswer()) == []
    assert await preflight.examine_instead(failing, choosing(1), NoAnswer()) == failing


async def test_an_alternative_must_fit_after_admission() -> None:
    preflight = preflight_on(node("n", 2))
    admission = Scripted(nodeSelector={"pool": "elsewhere"})

    decision = await preflight.examine(choosing(4), admission)

    assert await instead(preflight, decision, choosing(4), admission) == []


async def test_a_pod_that_admission_rejects_keeps_no_reservation() -> None:
    view = StillView(("Node", node("n", 4)))
    inner = Preflight(view)
    admission = Scripted()
    await AdmittedPreflight(inner).begin(choosing(4), admission)
    assert len(inner.reservations) == 1
    admission.refused = {4}

    assert isinstance(await AdmittedPreflight(inner).confirm(choosing(4), admission), Refuse)
    assert len(inner.reservations) == 0


async def test_without_an_answer_the_pod_is_judged_without_admission() -> None:
    preflight = preflight_on(node("n", 1))

    assert isinstance(await preflight.examine(proposal("a", 1), NoAnswer()), Start)
    assert isinstance(await preflight.examine(proposal("a", 2), NoAnswer()), Refuse)


async def test_a_gate_without_a_turn_starts_a_pod_that_fits_and_says_try_again_to_others() -> None:
    preflight = preflight_on(node("n", 1))

    for gate in (preflight.examine, preflight.begin, preflight.confirm):
        assert isinstance(await gate(proposal("a", 1), NoTurn()), Start)
        refused = await gate(proposal("b", 2), NoTurn())
        assert isinstance(refused, Refuse)
        assert refused.reason is Reason.TRY_AGAIN


async def test_a_try_again_has_no_alternatives() -> None:
    preflight = preflight_on(node("n", 2))

    decision = await preflight.examine(choosing(4), NoTurn())

    assert await instead(preflight, decision, choosing(4), Scripted()) == []


class OneTurn(Scripted):
    """Admission that has a single turn."""

    async def admit(self, namespace: str, pod: Any) -> Any:
        if self.asked:
            raise TooManyDryRunsError
        return await super().admit(namespace, pod)


async def test_without_a_turn_a_preview_is_an_error_and_alternatives_skip_admission() -> None:
    preflight = preflight_on(node("n", 2))
    with pytest.raises(TooManyDryRunsError):
        await preflight.foretell(proposal("a", 4), NoTurn())

    changing = OneTurn(tolerations=[{"operator": "Exists"}])
    decision = await preflight.foretell(choosing(4), changing)

    assert await instead(preflight, decision, choosing(4), changing) == [2, 0]


async def test_alternatives_to_an_unchanged_pod_need_no_dry_run_in_a_preview() -> None:
    preflight, admission = preflight_on(node("n", 2)), Scripted()

    decision = await preflight.foretell(choosing(4), admission)

    assert await instead(preflight, decision, choosing(4), admission) == [2, 0]
    assert admission.asked == [4]


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (OverQuota((Use("pods", 1, 1, 1),)), Reason.QUOTA),
        (QuotaUncounted(), Reason.QUOTA),
        (OutOfRange((Breach("memory", Bound.MAXIMUM, 1, 2),)), Reason.LIMIT_RANGE),
        (Insecure("restricted"), Reason.NOT_ADMITTED),
    ],
)
async def test_each_cause_has_its_reason(cause: Cause, reason: Reason) -> None:
    admission = Scripted()
    admission.refused, admission.no = {1}, Rejection(Of.POD, cause, "")

    decision = await preflight_on(node("n", 1)).examine(proposal("a"), admission)

    assert isinstance(decision, Refuse)
    assert decision.reason is reason

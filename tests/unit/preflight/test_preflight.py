"""Decisions about pods that admission changes or rejects."""

from dataclasses import replace

import pytest

from gpuspawner.cluster.health import Live, Stale
from gpuspawner.preflight.decision import Reason, Start, Wait, rejected
from gpuspawner.preflight.dry_runs import TooManyDryRunsError
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposed_pod import Proposal
from gpuspawner.preflight.rejection import (
    Bound,
    Breach,
    Denied,
    Insecure,
    Missing,
    Of,
    OutOfRange,
    OverQuota,
    QuotaDemands,
    QuotaUncounted,
    Rejection,
    Use,
    WebhookFailed,
)
from tests.unit.makers.admissions import (
    OFFERS,
    ON_A_CLOUD,
    OVER,
    TAINT,
    NoAnswer,
    NoTurn,
    Scripted,
    choosing,
    preflight_on,
    tolerating,
)
from tests.unit.makers.worlds import (
    NAMESPACE,
    ONE_FREE,
    Instead,
    StillView,
    is_unknown,
    labelled,
    node,
    of_pool,
    proposal,
    refused,
    waiting,
)

pytestmark = pytest.mark.usefixtures("clock")


def rejecting(*gpus):
    admission = Scripted()
    admission.refused = set(gpus)
    return admission


async def instead(preflight, decision, what, admission):
    """Return the numbers of GPUs in the alternatives to a refused proposal."""
    assert decision.alternatives == ()
    refusal = await preflight.with_alternatives(decision, what, Instead(OFFERS), admission)
    return [alternative.grant.gpus for alternative in refusal.alternatives]


async def test_a_toleration_that_admission_adds_turns_a_no_into_a_yes():
    preflight = preflight_on(node("n", 1, taints=[TAINT]))
    what, admission = proposal("a"), tolerating()

    assert refused(preflight.decider.check(what))
    assert isinstance(await preflight.foretell(what, admission), Start)
    assert isinstance(await preflight.examine(what, admission), Start)
    assert isinstance(await preflight.begin(what, admission), Start)
    assert isinstance(await preflight.confirm(what, admission), Start)


async def test_a_toleration_that_admission_adds_turns_a_wait_for_a_node_into_a_start():
    preflight = preflight_on(node("n", 1, taints=[TAINT], **ON_A_CLOUD))
    what, admission = proposal("a"), tolerating()

    assert isinstance(preflight.decider.check(what), Wait)
    assert isinstance(await preflight.foretell(what, admission), Start)
    assert isinstance(await preflight.begin(what, admission), Start)
    held = preflight.reservations.find(what.key)
    assert not held.waits


async def test_without_an_answer_a_no_that_tolerations_could_prevent_is_unknown():
    preflight = preflight_on(node("n", 1, taints=[TAINT]))
    what, admission = proposal("a"), NoAnswer()

    for asked in (preflight.foretell, preflight.examine, preflight.begin, preflight.confirm):
        decision = await asked(what, admission)
        assert is_unknown(decision)


async def test_without_an_answer_a_no_that_no_toleration_prevents_stays():
    preflight = preflight_on(node("n", 1, taints=[TAINT]))

    assert refused(await preflight.begin(choosing(2), NoAnswer()))


async def test_without_an_answer_admission_is_supposed_to_do_what_it_did_last():
    other = {"key": "team", "effect": "NoSchedule"}
    preflight = preflight_on(node("a", 1, taints=[TAINT]), node("b", 2, taints=[other]))
    known = Scripted(tolerations=[{"key": TAINT["key"], "operator": "Exists"}])
    assert isinstance(await preflight.examine(choosing(1), known), Start)

    decision = await preflight.begin(choosing(1), NoAnswer())

    assert is_unknown(decision)
    assert refused(await preflight.begin(choosing(2), NoAnswer()))


async def test_a_wait_for_a_node_that_admission_rejects_keeps_no_reservation():
    preflight = preflight_on(node("n", 1, taints=[TAINT], **ON_A_CLOUD))
    what = proposal("a")

    assert refused(await preflight.begin(what, rejecting(1))) is Reason.QUOTA

    assert preflight.reservations.find(what.key) is None


async def test_a_selector_that_admission_adds_turns_a_yes_into_a_no():
    preflight = preflight_on(node("n", 1))
    what, admission = proposal("a"), Scripted(nodeSelector={"pool": "elsewhere"})

    assert isinstance(preflight.decider.check(what), Start)
    assert refused(await preflight.examine(what, admission))
    assert refused(await preflight.confirm(what, admission))


async def test_a_rejected_pod_is_refused_without_rejected_alternatives():
    preflight = preflight_on(node("n", 8))
    admission = rejecting(8, 4, 2)

    decision = await preflight.examine(choosing(8), admission)

    assert (refused(decision), decision.rejection) == (Reason.QUOTA, OVER)
    assert await instead(preflight, decision, choosing(8), admission) == [1, 0]


@pytest.mark.parametrize(
    ("gpus", "admission"),
    [(8, rejecting(4, 2, 1, 0)), (2, Scripted(nodeSelector={"pool": "elsewhere"}))],
    ids=["admission rejects everything", "nothing fits after admission"],
)
async def test_an_alternative_must_be_admitted_and_fit_then(gpus, admission):
    preflight = preflight_on(node("n", gpus))

    decision = await preflight.examine(choosing(4), admission)

    assert await instead(preflight, decision, choosing(4), admission) == []


async def test_while_a_webhook_does_not_answer_nothing_else_is_offered():
    preflight = preflight_on(node("n", 8))
    what = choosing(4)
    failing = rejected(what.grant, Rejection(Of.POD, WebhookFailed("mpod.kb.io"), "no answer"))

    assert await instead(preflight, failing, what, NoAnswer()) == []
    assert await preflight.examine_instead(failing, choosing(1), NoAnswer()) == failing


@pytest.mark.parametrize(
    ("what", "admission"),
    [(choosing(4), rejecting(4)), (choosing(8), NoAnswer())],
    ids=["rejected", "too large by then"],
)
async def test_a_pod_that_is_refused_when_it_is_sent_keeps_no_reservation(what, admission):
    preflight = preflight_on(node("n", 4))
    await preflight.begin(choosing(4), Scripted())
    assert len(preflight.reservations) == 1

    assert refused(await preflight.confirm(what, admission))
    assert len(preflight.reservations) == 0


async def test_a_form_is_not_refused_by_what_was_known_before_contact_was_lost():
    """The start itself waits for contact."""
    view = StillView(*ONE_FREE)
    view.touch = False

    decision = await Preflight(view).examine(proposal("a", 2), Scripted())
    assert is_unknown(decision)

    view.touch = True
    assert refused(await Preflight(view).examine(proposal("a", 2), Scripted())) is Reason.BUSY


@pytest.mark.parametrize(
    ("cause", "unknown"),
    [
        (Missing("ServiceAccount", "alice"), "is_unfinished"),
        (Insecure("restricted"), "is_unfinished"),
        (Denied("a label is missing"), "is_unfinished"),
        (QuotaDemands(("limits.memory",)), "is_open"),
        (OVER.cause, "is_open"),
    ],
    ids=lambda it: type(it).__name__,
)
async def test_what_the_hub_s_own_code_may_mend_is_no_reason_before_it_has_run(cause, unknown):
    preflight, admission = preflight_on(node("n", 1)), rejecting(1)
    admission.no = Rejection(Of.POD, cause, "")
    early = replace(proposal("a"), **{unknown: True})

    assert await preflight.examine(early, admission) == Start(early.grant)
    for gate in (preflight.examine, preflight.confirm):
        assert refused(await gate(proposal("a"), admission))


async def test_a_rejected_pod_that_code_may_mend_still_needs_room():
    admission = rejecting(2)
    admission.no = Rejection(Of.POD, Insecure("restricted"), "")
    early = replace(proposal("a", 2), is_unfinished=True)

    decision = await preflight_on(node("n", 1)).examine(early, admission)

    assert refused(decision) is Reason.IMPOSSIBLE


async def test_a_gate_without_a_turn_starts_a_pod_that_fits_and_says_try_again_to_others():
    preflight = preflight_on(node("n", 1))

    for gate in (preflight.examine, preflight.begin, preflight.confirm):
        assert isinstance(await gate(proposal("a", 1), NoTurn()), Start)
        assert refused(await gate(proposal("b", 2), NoTurn())) is Reason.TRY_AGAIN


async def test_a_try_again_has_no_alternatives():
    preflight = preflight_on(node("n", 2))

    decision = await preflight.examine(choosing(4), NoTurn())

    assert await instead(preflight, decision, choosing(4), Scripted()) == []


async def test_without_a_turn_a_preview_is_an_error():
    with pytest.raises(TooManyDryRunsError):
        await preflight_on(node("n", 2)).foretell(proposal("a", 4), NoTurn())


async def test_without_a_turn_alternatives_skip_admission():
    preflight = preflight_on(node("n", 2))
    decision = await preflight.foretell(choosing(4), tolerating())

    assert await instead(preflight, decision, choosing(4), NoTurn()) == [2, 0]


async def test_alternatives_to_an_unchanged_pod_need_no_dry_run_in_a_preview():
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
async def test_each_cause_has_its_reason(cause, reason):
    admission = rejecting(1)
    admission.no = Rejection(Of.POD, cause, "")

    decision = await preflight_on(node("n", 1)).examine(proposal("a"), admission)

    assert refused(decision) is reason


# Sure room, so that a pod may be kept off other nodes


@pytest.mark.parametrize(
    ("what", "health", "is_sure"),
    [
        (proposal("a", 1), Live(0.5), True),
        (proposal("a", 2), Live(0.5), False),
        (of_pool("a", 2), Live(0.5), True),
        (Proposal(NAMESPACE, "a", {"spec": None}, proposal("a").grant), Live(0.5), False),
        (proposal("a", 1), Stale(30, "HTTP 500"), False),
    ],
    ids=["it fits", "it doesn't fit", "its node can come", "nobody can read it", "no live view"],
)
async def test_room_is_sure_if_a_pod_fits_or_a_node_comes_for_it(what, health, is_sure):
    view = StillView(*ONE_FREE)
    view.now = health

    assert await Preflight(view).secures(what, NoAnswer()) is is_sure


async def test_what_is_promised_to_others_is_no_sure_room():
    preflight = Preflight(StillView(*ONE_FREE))
    await preflight.reserving.take(proposal("other", 1))

    assert not await preflight.secures(proposal("a", 1), NoAnswer())
    assert await preflight.secures(proposal("other", 1), NoAnswer())


async def test_nobody_takes_sure_room_before_the_pod_is_sent_that_keeps_off_other_nodes():
    preflight = preflight_on(node("n", 2), labelled(node("m", 2), {"gpu": "t4"}))
    elsewhere = proposal("a", 2, nodeSelector={"gpu": "t4"})
    await preflight.reserving.take(proposal("a", 2, nodeSelector={}))

    assert await preflight.secures(elsewhere, NoAnswer())
    other = await waiting(preflight.reserving.take(proposal("other", 2, nodeSelector={})))
    assert isinstance(await preflight.reserving.move(elsewhere), Start)
    other.cancel()  # it might still get the same node

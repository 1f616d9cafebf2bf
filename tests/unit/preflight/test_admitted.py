"""Decisions about pods that admission changes or rejects."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpuspawner.preflight.admitted import AdmittedPreflight, rejected
from gpuspawner.preflight.decision import Reason, Refuse, Start, Wait
from gpuspawner.preflight.dry_runs import TooManyDryRunsError
from gpuspawner.preflight.preflight import Preflight
from gpuspawner.preflight.proposal import Proposal
from gpuspawner.preflight.rejection import (
    Bound,
    Breach,
    Insecure,
    Of,
    OutOfRange,
    OverQuota,
    QuotaUncounted,
    Rejection,
    RejectionCause,
    Use,
    WebhookFailed,
)
from tests.unit.makers.admissions import (
    OFFERS,
    OVER,
    TAINT,
    NoAnswer,
    NoTurn,
    Scripted,
    choosing,
    preflight_on,
)
from tests.unit.makers.worlds import Instead, StillView, node, pod, proposal, refused

pytestmark = pytest.mark.usefixtures("clock")

TOLERATE_ALL = [{"operator": "Exists"}]
ON_A_CLOUD = {"providerID": "gce://project/zone/n"}  # where pools may grow


def tolerating() -> Scripted:
    return Scripted(tolerations=TOLERATE_ALL)


def rejecting(*gpus: int) -> Scripted:
    admission = Scripted()
    admission.refused = set(gpus)
    return admission


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
    what, admission = proposal("a"), tolerating()

    assert refused(preflight.check(what))
    assert isinstance(await preflight.foretell(what, admission), Start)
    assert isinstance(await preflight.examine(what, admission), Start)
    assert isinstance(await preflight.begin(what, admission), Start)
    assert isinstance(await preflight.confirm(what, admission), Start)


async def test_a_toleration_that_admission_adds_turns_a_wait_for_a_node_into_a_start() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT], **ON_A_CLOUD))
    what, admission = proposal("a"), tolerating()

    assert isinstance(preflight.check(what), Wait)
    assert isinstance(await preflight.foretell(what, admission), Start)
    assert isinstance(await preflight.begin(what, admission), Start)
    held = preflight.reservations.find(what.key)
    assert held is not None
    assert not held.waits
    assert isinstance(await preflight.confirm(what, admission), Start)


async def test_a_wait_for_a_node_that_admission_rejects_keeps_no_reservation() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT], **ON_A_CLOUD))
    what = proposal("a")

    assert refused(await preflight.begin(what, rejecting(1))) is Reason.QUOTA

    assert preflight.reservations.find(what.key) is None


async def test_a_wait_for_a_node_needs_no_dry_run_while_no_node_has_a_free_gpu() -> None:
    full = StillView(("Node", node("n", 1, **ON_A_CLOUD)), ("Pod", pod("x", on="n")))
    preflight, admission = AdmittedPreflight(Preflight(full)), tolerating()
    await preflight.try_sample(proposal("sample"), admission)
    admission.asked.clear()

    assert isinstance(await preflight.foretell(proposal("a"), admission), Wait)
    assert isinstance(await preflight.begin(proposal("a"), admission), Wait)

    assert not admission.asked


async def test_a_wait_for_a_node_needs_no_dry_run_while_admission_changes_no_pod() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT], **ON_A_CLOUD))
    admission = Scripted()
    await preflight.try_sample(proposal("sample"), admission)
    admission.asked.clear()

    assert isinstance(await preflight.begin(proposal("a"), admission), Wait)

    assert not admission.asked


async def test_a_selector_that_admission_adds_turns_a_yes_into_a_no() -> None:
    preflight = preflight_on(node("n", 1))
    what, admission = proposal("a"), Scripted(nodeSelector={"pool": "elsewhere"})

    assert isinstance(preflight.check(what), Start)
    assert refused(await preflight.examine(what, admission))
    assert refused(await preflight.confirm(what, admission))


async def test_a_rejected_pod_is_refused_without_rejected_alternatives() -> None:
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
async def test_an_alternative_must_be_admitted_and_fit_then(gpus, admission) -> None:
    preflight = preflight_on(node("n", gpus))

    decision = await preflight.examine(choosing(4), admission)

    assert await instead(preflight, decision, choosing(4), admission) == []


async def test_while_a_webhook_does_not_answer_nothing_else_is_offered() -> None:
    preflight = preflight_on(node("n", 8))
    what = choosing(4)
    failing = rejected(what.grant, Rejection(Of.POD, WebhookFailed("mpod.kb.io"), "no answer"))

    assert await instead(preflight, failing, what, NoAnswer()) == []
    assert await preflight.examine_instead(failing, choosing(1), NoAnswer()) == failing


async def test_a_pod_that_admission_rejects_keeps_no_reservation() -> None:
    view = StillView(("Node", node("n", 4)))
    inner = Preflight(view)
    admission = Scripted()
    await AdmittedPreflight(inner).begin(choosing(4), admission)
    assert len(inner.reservations) == 1
    admission.refused = {4}

    assert refused(await AdmittedPreflight(inner).confirm(choosing(4), admission))
    assert len(inner.reservations) == 0


async def test_without_an_answer_the_pod_is_judged_without_admission() -> None:
    preflight = preflight_on(node("n", 1))

    assert isinstance(await preflight.examine(proposal("a", 1), NoAnswer()), Start)
    assert refused(await preflight.examine(proposal("a", 2), NoAnswer()))


async def test_a_gate_without_a_turn_starts_a_pod_that_fits_and_says_try_again_to_others() -> None:
    preflight = preflight_on(node("n", 1))

    for gate in (preflight.examine, preflight.begin, preflight.confirm):
        assert isinstance(await gate(proposal("a", 1), NoTurn()), Start)
        assert refused(await gate(proposal("b", 2), NoTurn())) is Reason.TRY_AGAIN


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

    changing = OneTurn(tolerations=TOLERATE_ALL)
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
async def test_each_cause_has_its_reason(cause: RejectionCause, reason: Reason) -> None:
    admission = rejecting(1)
    admission.no = Rejection(Of.POD, cause, "")

    decision = await preflight_on(node("n", 1)).examine(proposal("a"), admission)

    assert refused(decision) is reason


# When admission is asked: what earlier dry runs have shown spares some


async def test_a_no_needs_no_dry_run_while_admission_has_changed_no_pod() -> None:
    preflight = preflight_on(node("n", 1))
    admission = Scripted()
    await preflight.examine(proposal("a"), admission)
    admission.asked.clear()

    assert refused(await preflight.begin(proposal("b", 8), admission))
    assert admission.asked == []


async def test_after_a_sample_the_first_no_needs_no_dry_run_and_is_tried_afterwards() -> None:
    preflight, admission = preflight_on(node("n", 1)), Scripted()
    await preflight.try_sample(choosing(2), admission)
    admission.asked.clear()

    for _ in range(2):
        assert refused(await preflight.begin(choosing(8), admission))
        assert refused(await preflight.foretell(choosing(8), admission))
        await asyncio.sleep(0)

    assert admission.asked == [8]


@pytest.mark.parametrize("silent", [NoAnswer(), NoTurn()], ids=["no answer", "no turn"])
async def test_a_first_no_that_could_not_be_tried_leaves_that_to_the_next(silent) -> None:
    preflight, admission = preflight_on(node("n", 1)), tolerating()
    await preflight.try_sample(proposal("sample", 2), Scripted())

    for asked in (silent, admission):
        assert refused(await preflight.begin(proposal("a", 2), asked))
        await asyncio.sleep(0)

    assert admission.asked == [2]


async def test_admission_that_treats_a_sample_differently_is_asked_from_the_second_no_on() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT]), node("full", 1))
    await preflight.try_sample(proposal("a", 2), Scripted())
    smaller = tolerating()
    assert refused(await preflight.begin(proposal("b", 2), smaller))
    await asyncio.sleep(0)
    smaller.asked.clear()

    assert refused(await preflight.begin(proposal("b", 2), smaller))
    assert smaller.asked == [2]


async def test_admission_that_changes_a_sample_is_asked_about_each_no() -> None:
    preflight, admission = preflight_on(node("n", 1)), tolerating()
    await preflight.try_sample(proposal("a", 2), admission)

    for _ in range(2):
        assert refused(await preflight.begin(proposal("b", 2), admission))

    assert admission.asked == [2, 2, 2]


async def test_a_sample_says_nothing_of_what_servers_have_shown() -> None:
    preflight = preflight_on(node("n", 1))
    changing = tolerating()
    await preflight.examine(proposal("a", 2), changing)
    await preflight.try_sample(proposal("a", 2), Scripted())

    await preflight.begin(proposal("b", 2), changing)

    assert changing.asked == [2, 2]


@pytest.mark.parametrize("admission", [NoAnswer(), NoTurn()])
async def test_a_sample_without_an_answer_says_nothing(admission) -> None:
    preflight, asked = preflight_on(node("n", 1)), Scripted()
    await preflight.try_sample(proposal("a", 2), admission)

    await preflight.begin(proposal("b", 2), asked)

    assert asked.asked == [2]


async def test_an_open_form_asks_admission_only_about_a_no() -> None:
    preflight = preflight_on(node("n", 1))
    admission = Scripted()

    assert isinstance(await preflight.foretell(proposal("a", 1), admission), Start)
    assert admission.asked == []
    for _ in range(3):
        assert refused(await preflight.foretell(proposal("a", 8), admission))
    assert admission.asked == [8]


async def test_a_no_needs_a_dry_run_once_admission_has_changed_a_pod() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT]))
    admission = Scripted()
    await preflight.examine(proposal("a"), admission)
    admission.more = {"tolerations": TOLERATE_ALL}
    assert isinstance(await preflight.examine(proposal("a"), admission), Start)

    assert isinstance(await preflight.begin(proposal("b"), admission), Start)


async def test_one_changed_pod_is_enough_to_keep_asking_admission() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT]))
    changing = tolerating()
    await preflight.examine(proposal("a"), changing)
    await preflight.examine(proposal("b"), Scripted())

    assert isinstance(await preflight.begin(proposal("c"), changing), Start)


class ForAnnAlone:
    """Admission that treats one user differently."""

    def __init__(self, hers: Scripted) -> None:
        self._hers = hers
        self._others = Scripted()

    async def admit(self, namespace: str, pod: Any) -> Any:
        admission = self._hers if pod["metadata"]["name"] == "ann" else self._others
        return await admission.admit(namespace, pod)


async def test_admissions_answer_for_one_user_is_not_used_for_another() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT]))
    for_ann_alone = ForAnnAlone(tolerating())

    assert refused(await preflight.examine(proposal("bob"), for_ann_alone))

    assert isinstance(await preflight.begin(proposal("ann"), for_ann_alone), Start)
    assert refused(await preflight.begin(proposal("bob"), for_ann_alone))


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("Node", node("reserved", 1, taints=[TAINT])),
        ("PriorityClass", {"metadata": {"name": "staff"}, "value": 1000}),
    ],
    ids=["a free GPU that only a toleration opens", "a class that ends other people's pods"],
)
async def test_a_no_that_admission_could_change_always_needs_a_dry_run(kind, plain) -> None:
    view = StillView(("Node", node("n", 1)), ("Pod", pod("x", on="n")))
    preflight, admission = AdmittedPreflight(Preflight(view)), Scripted()
    await preflight.examine(proposal("a"), admission)
    admission.asked.clear()
    assert refused(await preflight.begin(proposal("b"), admission))
    assert admission.asked == []

    view.put(kind, plain)

    assert refused(await preflight.begin(proposal("b"), admission))
    assert admission.asked == [1]

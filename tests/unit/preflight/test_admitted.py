"""What admission makes of a pod comes before the verdict, and its no before everything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

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
)
from gpuspawner.admission.slots import TooManyDryRunsError
from gpuspawner.offers import Offers
from gpuspawner.options import GPURequest
from gpuspawner.policy import Grant
from gpuspawner.preflight.admitted import AdmittedPreflight
from gpuspawner.preflight.ask import Admit, Ask
from gpuspawner.preflight.decision import Reason, Refuse, Start
from gpuspawner.preflight.preflight import Preflight
from tests.unit.preflight.worlds import GPU, NAMESPACE, StillView, ask, node, pod

OVER = Rejection(Of.POD, OverQuota((Use(GPU, 4, 3, 4),)), "exceeded quota: gpu")
TAINT = {"key": GPU, "effect": "NoSchedule"}
OFFERS = Offers.parse(
    accelerators={"a100": {"node_selector": {"gpu": "a100"}, "counts": [1, 2, 4, 8]}}
)


class Admission:
    """Admission as a script has it: what it makes of a pod by the GPUs that it asks for."""

    def __init__(self, **more: object) -> None:
        self.more = more
        self.refused: set[int] = set()
        self.asked: list[int] = []

    async def __call__(self, plain: Any) -> Any:
        [container] = plain["spec"]["containers"]
        gpus = int(container["resources"]["limits"].get(GPU, "0"))
        self.asked.append(gpus)
        return OVER if gpus in self.refused else {**plain, "spec": {**plain["spec"], **self.more}}


def preflight_on(*nodes: dict[str, object]) -> AdmittedPreflight:
    return AdmittedPreflight(Preflight(StillView(*(("Node", plain) for plain in nodes))))


def choosing(gpus: int, admission: Admission, admit: Admit | None = None) -> Ask:
    """1, 2, 4 or 8 GPUs of one model are on offer."""
    accelerator = OFFERS.accelerators["a100"]

    def variant(request: GPURequest) -> tuple[Grant, dict[str, object]]:
        chosen = accelerator if request.accelerator else None
        return Grant(chosen, request.gpus), pod("a", request.gpus)

    grant = Grant(accelerator, gpus)
    made = pod("a", gpus)
    return Ask(
        NAMESPACE, "a", made, grant, offers=OFFERS, variant=variant, admit=admit or admission
    )


def counts(decision: object) -> list[int]:
    assert isinstance(decision, Refuse)
    return [alternative.grant.gpus for alternative in decision.alternatives]


async def test_a_toleration_that_admission_adds_makes_a_no_a_yes() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT]))
    what = replace(ask("a"), admit=Admission(tolerations=[{"operator": "Exists"}]))

    assert isinstance(preflight.check(what), Refuse)
    assert isinstance(await preflight.foretell(what), Start)
    assert isinstance(await preflight.examine(what), Start)
    assert isinstance(await preflight.begin(what), Start)
    assert isinstance(await preflight.confirm(what), Start)


async def test_a_selector_that_admission_adds_makes_a_yes_a_no() -> None:
    preflight = preflight_on(node("n", 1))
    what = replace(ask("a"), admit=Admission(nodeSelector={"pool": "elsewhere"}))

    assert isinstance(preflight.check(what), Start)
    assert isinstance(await preflight.examine(what), Refuse)
    assert isinstance(await preflight.confirm(what), Refuse)


async def test_a_no_is_given_at_once_where_admission_leaves_such_pods_as_they_are() -> None:
    preflight = preflight_on(node("n", 1))
    admission = Admission()
    await preflight.examine(replace(ask("a"), admit=admission))
    admission.asked.clear()

    assert isinstance(await preflight.begin(replace(ask("b", 8), admit=admission)), Refuse)
    assert admission.asked == []


async def test_while_a_form_is_open_admission_is_asked_only_about_a_no() -> None:
    preflight = preflight_on(node("n", 1))
    admission = Admission()

    assert isinstance(await preflight.foretell(replace(ask("a", 1), admit=admission)), Start)
    assert admission.asked == []
    for _ in range(3):
        assert isinstance(await preflight.foretell(replace(ask("a", 8), admit=admission)), Refuse)
    assert admission.asked == [8]


async def test_a_no_waits_for_admission_once_it_is_seen_to_change_such_pods() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT]))
    admission = Admission()
    await preflight.examine(replace(ask("a"), admit=admission))
    admission.more = {"tolerations": [{"operator": "Exists"}]}
    assert isinstance(await preflight.examine(replace(ask("a"), admit=admission)), Start)

    assert isinstance(await preflight.begin(replace(ask("b"), admit=admission)), Start)


async def test_one_pod_that_admission_changes_outweighs_all_that_it_leaves_as_they_are() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT]))
    tolerated = Admission(tolerations=[{"operator": "Exists"}])
    await preflight.examine(replace(ask("a"), admit=tolerated))
    await preflight.examine(replace(ask("b"), admit=Admission()))

    assert isinstance(await preflight.begin(replace(ask("c"), admit=tolerated)), Start)


async def test_what_admission_did_to_one_person_s_pod_is_no_answer_for_another() -> None:
    preflight = preflight_on(node("n", 1, taints=[TAINT]))
    tolerating, leaving = Admission(tolerations=[{"operator": "Exists"}]), Admission()

    async def for_ann_alone(plain: Any) -> Any:
        return await (tolerating if plain["metadata"]["name"] == "ann" else leaving)(plain)

    assert isinstance(await preflight.examine(replace(ask("bob"), admit=for_ann_alone)), Refuse)

    assert isinstance(await preflight.begin(replace(ask("ann"), admit=for_ann_alone)), Start)
    assert isinstance(await preflight.begin(replace(ask("bob"), admit=for_ann_alone)), Refuse)


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("Node", node("reserved", 1, taints=[TAINT])),
        ("PriorityClass", {"metadata": {"name": "staff"}, "value": 1000}),
    ],
    ids=["a free GPU that only a toleration opens", "a class that ends other people's pods"],
)
async def test_a_no_that_admission_could_turn_for_one_person_is_always_asked_about(
    kind: str, plain: dict[str, object]
) -> None:
    view = StillView(("Node", node("n", 1)), ("Pod", pod("x", on="n")))
    preflight, admission = AdmittedPreflight(Preflight(view)), Admission()
    await preflight.examine(replace(ask("a"), admit=admission))
    admission.asked.clear()
    assert isinstance(await preflight.begin(replace(ask("b"), admit=admission)), Refuse)
    assert admission.asked == []

    view.put(kind, plain)

    assert isinstance(await preflight.begin(replace(ask("b"), admit=admission)), Refuse)
    assert admission.asked == [1]


async def test_what_the_api_server_does_not_take_is_refused_and_no_such_thing_offered() -> None:
    preflight = preflight_on(node("n", 8))
    admission = Admission()
    admission.refused = {8, 4, 2}

    decision = await preflight.examine(choosing(8, admission))

    assert isinstance(decision, Refuse)
    assert (decision.reason, decision.rejection) == (Reason.QUOTA, OVER)
    assert counts(decision) == [1, 0]


async def test_where_it_takes_nothing_nothing_is_offered() -> None:
    preflight = preflight_on(node("n", 8))
    admission = Admission()
    admission.refused = {4, 2, 1, 0}

    assert counts(await preflight.examine(choosing(4, admission))) == []


async def test_what_fits_only_as_it_is_sent_is_not_offered() -> None:
    preflight = preflight_on(node("n", 2))

    decision = await preflight.examine(choosing(4, Admission(nodeSelector={"pool": "elsewhere"})))

    assert counts(decision) == []


async def test_a_pod_that_admission_does_not_take_keeps_no_seat() -> None:
    view = StillView(("Node", node("n", 4)))
    inner = Preflight(view)
    admission = Admission()
    await AdmittedPreflight(inner).begin(choosing(4, admission))
    assert len(inner.seats) == 1
    admission.refused = {4}

    assert isinstance(await AdmittedPreflight(inner).confirm(choosing(4, admission)), Refuse)
    assert len(inner.seats) == 0


async def test_without_an_answer_the_pod_is_judged_as_it_is_sent() -> None:
    preflight = preflight_on(node("n", 1))

    assert isinstance(await preflight.examine(ask("a", 1)), Start)
    assert isinstance(await preflight.examine(ask("a", 2)), Refuse)


async def no_turn(_: object) -> None:
    raise TooManyDryRunsError


async def test_a_gate_without_a_turn_says_yes_to_what_fits_and_try_again_to_the_rest() -> None:
    preflight = preflight_on(node("n", 1))
    fits, does_not = (
        replace(ask(name, gpus), admit=no_turn) for name, gpus in (("a", 1), ("b", 2))
    )

    for gate in (preflight.examine, preflight.begin, preflight.confirm):
        assert isinstance(await gate(fits), Start)
        refused = await gate(does_not)
        assert isinstance(refused, Refuse)
        assert refused.reason is Reason.TRY_AGAIN


async def test_a_preview_without_a_turn_is_none_and_alternatives_are_then_those_in_view() -> None:
    preflight = preflight_on(node("n", 2))
    with pytest.raises(TooManyDryRunsError):
        await preflight.foretell(replace(ask("a", 4), admit=no_turn))

    changing = Admission(tolerations=[{"operator": "Exists"}])

    async def one_turn(plain: Any) -> Any:
        if changing.asked:
            raise TooManyDryRunsError
        return await changing(plain)

    assert counts(await preflight.foretell(choosing(4, changing, one_turn))) == [2, 0]


async def test_in_a_preview_of_a_pod_that_admission_leaves_alone_alternatives_cost_nothing() -> (
    None
):
    preflight, admission = preflight_on(node("n", 2)), Admission()

    assert counts(await preflight.foretell(choosing(4, admission))) == [2, 0]
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
async def test_each_cause_has_its_slug(cause: Cause, reason: Reason) -> None:
    async def admit(_: object) -> Rejection:
        return Rejection(Of.POD, cause, "")

    decision = await preflight_on(node("n", 1)).examine(replace(ask("a"), admit=admit))

    assert isinstance(decision, Refuse)
    assert decision.reason is reason

"""When admission is asked: what earlier dry runs have shown spares some."""

import asyncio

import pytest

from gpuspawner.preflight.decision import Start, Wait
from gpuspawner.preflight.preflight import Preflight
from tests.unit.makers.admissions import (
    ON_A_CLOUD,
    TAINT,
    NoAnswer,
    NoTurn,
    Scripted,
    choosing,
    preflight_on,
    tolerating,
)
from tests.unit.makers.worlds import StillView, node, pod, proposal, refused

pytestmark = pytest.mark.usefixtures("clock")


async def test_a_no_needs_no_dry_run_while_admission_has_changed_no_pod():
    preflight, admission = preflight_on(node("n", 1)), Scripted()
    await preflight.examine(proposal("a"), admission)

    assert refused(await preflight.begin(proposal("b", 8), admission))

    assert admission.asked == [1]


@pytest.mark.parametrize(
    ("objects", "admission"),
    [
        ([("Node", node("n", 1, **ON_A_CLOUD)), ("Pod", pod("x", on="n"))], tolerating()),
        ([("Node", node("n", 1, taints=[TAINT], **ON_A_CLOUD))], Scripted()),
    ],
    ids=["no node has a free GPU", "admission changes no pod"],
)
async def test_a_wait_for_a_node_needs_no_dry_run_while(objects, admission):
    preflight = Preflight(StillView(*objects))
    await preflight.learned.try_sample(proposal("sample"), admission)

    assert isinstance(await preflight.foretell(proposal("a"), admission), Wait)
    assert isinstance(await preflight.begin(proposal("a"), admission), Wait)

    assert admission.asked == [1]


async def test_after_a_sample_the_first_no_needs_no_dry_run_and_is_tried_afterwards():
    preflight, admission = preflight_on(node("n", 1)), Scripted()
    await preflight.learned.try_sample(choosing(2), admission)

    for _ in range(2):
        assert refused(await preflight.begin(choosing(8), admission))
        assert refused(await preflight.foretell(choosing(8), admission))
        await asyncio.sleep(0)

    assert admission.asked == [2, 8]


@pytest.mark.parametrize("silent", [NoAnswer(), NoTurn()], ids=["no answer", "no turn"])
async def test_a_first_no_that_could_not_be_tried_leaves_that_to_the_next(silent):
    preflight, admission = preflight_on(node("n", 1)), tolerating()
    await preflight.learned.try_sample(proposal("sample", 2), Scripted())

    for asked in (silent, admission):
        assert refused(await preflight.begin(proposal("a", 2), asked))
        await asyncio.sleep(0)

    assert admission.asked == [2]


async def test_after_an_hour_without_a_start_a_no_is_tried_again(clock):
    """By then, a webhook may be there that makes of the pod one that fits."""
    preflight, admission = preflight_on(node("n", 1)), Scripted()
    await preflight.examine(proposal("a"), admission)

    for seconds in (3599, 2, 2, 3600):
        clock.now += seconds
        assert refused(await preflight.begin(proposal("b", 8), admission))
        await asyncio.sleep(0)

    assert admission.asked == [1, 8, 8]


async def test_admission_that_treats_a_sample_differently_is_asked_from_the_second_no_on():
    preflight = preflight_on(node("n", 1, taints=[TAINT]), node("full", 1))
    await preflight.learned.try_sample(proposal("a", 2), Scripted())
    smaller = tolerating()
    assert refused(await preflight.begin(proposal("b", 2), smaller))
    await asyncio.sleep(0)

    assert refused(await preflight.begin(proposal("b", 2), smaller))
    assert smaller.asked == [2, 2]


async def test_admission_that_changes_a_sample_is_asked_about_each_no():
    preflight, admission = preflight_on(node("n", 1)), tolerating()
    await preflight.learned.try_sample(proposal("a", 2), admission)

    for _ in range(2):
        assert refused(await preflight.begin(proposal("b", 2), admission))

    assert admission.asked == [2, 2, 2]


async def test_a_sample_says_nothing_of_what_servers_have_shown():
    preflight = preflight_on(node("n", 1))
    changing = tolerating()
    await preflight.examine(proposal("a", 2), changing)
    await preflight.learned.try_sample(proposal("a", 2), Scripted())

    await preflight.begin(proposal("b", 2), changing)

    assert changing.asked == [2, 2]


@pytest.mark.parametrize("admission", [NoAnswer(), NoTurn()])
async def test_a_sample_without_an_answer_says_nothing(admission):
    preflight, asked = preflight_on(node("n", 1)), Scripted()
    await preflight.learned.try_sample(proposal("a", 2), admission)

    await preflight.begin(proposal("b", 2), asked)

    assert asked.asked == [2]


async def test_an_open_form_asks_admission_only_about_a_no():
    preflight = preflight_on(node("n", 1))
    admission = Scripted()

    assert isinstance(await preflight.foretell(proposal("a", 1), admission), Start)
    assert admission.asked == []
    for _ in range(3):
        assert refused(await preflight.foretell(proposal("a", 8), admission))
    assert admission.asked == [8]


@pytest.mark.parametrize(
    "earlier",
    [[Scripted(), tolerating()], [tolerating(), Scripted()]],
    ids=["the last one", "an earlier one"],
)
async def test_a_no_needs_a_dry_run_once_admission_has_changed_a_pod(earlier):
    preflight = preflight_on(node("n", 1, taints=[TAINT]))
    for admission in earlier:
        await preflight.examine(proposal("a"), admission)

    assert isinstance(await preflight.begin(proposal("b"), tolerating()), Start)


async def test_admissions_answer_for_one_user_is_not_used_for_another():
    preflight, hers, others = preflight_on(node("n", 1, taints=[TAINT])), tolerating(), Scripted()
    assert refused(await preflight.examine(proposal("bob"), others))

    assert isinstance(await preflight.begin(proposal("ann"), hers), Start)
    assert refused(await preflight.begin(proposal("bob"), others))


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("Node", node("reserved", 1, taints=[TAINT])),
        ("PriorityClass", {"metadata": {"name": "staff"}, "value": 1000}),
    ],
    ids=["a free GPU that only a toleration opens", "a class that ends other people's pods"],
)
async def test_a_no_that_admission_could_change_always_needs_a_dry_run(kind, plain):
    view = StillView(("Node", node("n", 1)), ("Pod", pod("x", on="n")))
    preflight, admission = Preflight(view), Scripted()
    await preflight.examine(proposal("a"), admission)
    assert refused(await preflight.begin(proposal("b"), admission))
    assert admission.asked == [1]

    view.put(kind, plain)

    assert refused(await preflight.begin(proposal("b"), admission))
    assert admission.asked == [1, 1]

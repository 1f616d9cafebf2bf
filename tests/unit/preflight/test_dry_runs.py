"""Which dry runs are made and which answers are shared; tests/cluster has a real API server."""

import asyncio
from collections import Counter

import pytest

from gpuspawner.cluster.client import Client
from gpuspawner.preflight.dry_runs import (
    Budget,
    DryRun,
    DryRuns,
    Slots,
    TooManyDryRunsError,
)
from tests.unit.makers.clocks import Clock
from tests.unit.makers.worlds import settle


class Counting(DryRun):
    """Admission that leaves every pod as it is, and answers while it is open."""

    def __init__(self):
        super().__init__(Client(), 60)
        self.asked = []
        self.open = asyncio.Event()
        self.open.set()

    async def admit(self, namespace, pod):
        self.asked.append(f"{namespace}/{pod['metadata']['name']}")
        await self.open.wait()
        return pod


def pod(name, **labels):
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": []}}


def asking(count, turn):
    """Let *count* users ask at the same time, each about their own pod."""
    people = [f"person-{number}" for number in range(count)]
    return [asyncio.ensure_future(turn(person).admit("jhub", pod(person))) for person in people]


@pytest.mark.each_python
async def test_equal_questions_share_one_dry_run():
    admission = Counting()
    runs = DryRuns(admission, 0.01)
    admission.open.clear()

    anns = runs.for_form("ann")
    first = asyncio.ensure_future(anns.admit("jhub", pod("ann")))
    others = [asyncio.ensure_future(anns.admit("jhub", pod("ann"))) for _ in range(99)]
    await settle()
    first.cancel()
    admission.open.set()

    assert await asyncio.gather(*others) == [pod("ann")] * 99
    assert admission.asked == ["jhub/ann"]


async def test_other_pods_and_namespaces_have_their_own_dry_runs():
    admission, asked = Counting(), [("jhub", pod("a")), ("jhub", pod("a", of="b")), ("b", pod("a"))]
    runs = DryRuns(admission)

    for namespace, what in asked:
        assert await runs.for_form("ann").admit(namespace, what) == what

    assert len(admission.asked) == 3


async def test_an_answer_is_reused_for_ten_seconds_or_a_minute_if_many_ask():
    admission, clock = Counting(), Clock(0.0)
    runs = DryRuns(admission, clock=clock)
    await runs.for_form("ann").admit("jhub", pod("ann"))

    for clock.now in (9.0, 11.0):
        await runs.for_form("ann").admit("jhub", pod("ann"))
    assert len(admission.asked) == 2

    clock.now = 22
    for number in range(8):
        await runs.for_form(f"person-{number}").admit("jhub", pod(str(number)))
    await runs.for_form("ann").admit("jhub", pod("ann"))
    assert len(admission.asked) == 10
    with pytest.raises(TooManyDryRunsError):
        await runs.for_form("bob").admit("jhub", pod("bob"))

    for number in range(1000):  # a new user every 0.1 s
        clock.now = 22 + number / 10
        try:
            await runs.for_form(f"new-{number}").admit("jhub", pod(f"new-{number}"))
        except TooManyDryRunsError:
            if clock.now > 11 + 60:
                break
    with pytest.raises(TooManyDryRunsError):
        await runs.for_form("ann").admit("jhub", pod("ann"))


async def test_a_start_always_makes_its_own_dry_run():
    admission = Counting()
    runs = DryRuns(admission)

    for turn in (runs.for_form, runs.for_page, runs.for_start, runs.for_start):
        await turn("ann").admit("jhub", pod("ann"))

    assert len(admission.asked) == 3


async def test_pages_take_no_slot_from_starts():
    admission = Counting()
    runs = DryRuns(admission, 0.01)
    admission.open.clear()
    shown = asking(100, runs.for_page)
    await settle()
    with pytest.raises(TooManyDryRunsError):
        await runs.for_page("late").admit("jhub", pod("late"))
    start = asyncio.ensure_future(runs.for_start("ann").admit("jhub", pod("start")))
    await settle()
    assert "jhub/start" in admission.asked

    admission.open.set()

    assert await start == pod("start")
    answers = await asyncio.gather(*shown, return_exceptions=True)
    assert sum(isinstance(answer, TooManyDryRunsError) for answer in answers) == 96


async def test_starts_wait_longer_for_a_slot_than_pages():
    admission = Counting()
    runs = DryRuns(admission, 0.01)
    admission.open.clear()
    starts = asking(100, runs.for_start)
    pages = asking(4, runs.for_page)
    await settle()
    assert len(admission.asked) == 24 + 4
    with pytest.raises(TooManyDryRunsError):
        await runs.for_page("late").admit("jhub", pod("late"))  # this waits as long as pages do

    admission.open.set()

    assert await asyncio.gather(*starts) == [pod(f"person-{n}") for n in range(100)]
    await asyncio.gather(*pages)


@pytest.mark.parametrize("turn", [DryRuns.for_form, DryRuns.for_page, DryRuns.for_start])
async def test_a_pod_without_a_spec_needs_no_dry_run(turn):
    admission = Counting()

    assert await turn(DryRuns(admission), "ann").admit("jhub", {"spec": None}) is None
    assert not admission.asked


async def test_slots_are_limited_in_all_and_for_each_user():
    slots, inside, most = Slots(most=3, of_one=2, seconds=60), Counter(), Counter()

    async def enter(person):
        async with slots.slot(person):
            inside[person] += 1
            most[person] = max(most[person], inside[person])
            most["in all"] = max(most["in all"], inside.total())
            await settle()
            inside[person] -= 1

    await asyncio.gather(*(enter(person) for person in ["ann"] * 20 + ["bob", "eve"]))

    assert (most["ann"], most["in all"]) == (2, 3)


async def test_a_user_with_many_questions_does_not_block_others():
    slots = Slots(most=2, of_one=1, seconds=60)
    order = []

    async def ask(person):
        async with slots.slot(person):
            await asyncio.sleep(0)
            order.append(person)

    await asyncio.gather(*(ask(person) for person in ["ann"] * 10 + ["bob"]))

    assert order.index("bob") <= 1


@pytest.mark.each_python
async def test_waiting_too_long_for_a_slot_is_an_error():
    slots = Slots(most=1, of_one=1, seconds=0.01)

    async with slots.slot("ann"):
        for person in ("ann", "bob"):
            with pytest.raises(TooManyDryRunsError):
                async with slots.slot(person):
                    pass

    async with slots.slot("bob"):  # those who gave up hold no slot
        pass


def test_a_budget_gives_out_turns_at_its_rate_and_saves_some_up():
    clock = Clock(0.0)
    budget = Budget(4, 8, lately=60, clock=clock)
    people = iter(range(1_000))

    def taken():
        count = 0
        while budget.take(f"person-{next(people)}"):
            count += 1
        return count

    assert taken() == 8
    clock.now = 1
    assert taken() == 4
    clock.now = 60
    assert taken() == 8


def test_half_of_the_saved_turns_is_kept_for_users_who_had_none_lately():
    clock = Clock(0.0)
    budget = Budget(4, 8, lately=60, clock=clock)

    assert [budget.take("ann") for _ in range(6)] == [True] * 4 + [False] * 2
    assert budget.take("bob")

    clock.now = 61
    assert [budget.take("ann") for _ in range(6)] == [True] * 4 + [False] * 2

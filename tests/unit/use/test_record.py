"""The record notes each fact once, and sums up what `preflight: warn` would have spared people."""

import asyncio
from time import process_time

from gpuspawner.use import record as record_module
from gpuspawner.use.record import Record, RefusalReport, report
from tests.unit.use.facts import fact


def noted(*facts, readers=()):
    record = Record(readers)
    for it in facts:
        record.note(it)
    return record


def told(record):
    return [(it.happened.value, it.reason) for it in record.facts]


def test_a_server_ends_once_however_often_the_hub_clears_its_state():
    end = fact("ended", reason="stopped")

    record = noted(fact("granted"), fact("started"), end, end)

    assert told(record) == [("granted", ""), ("started", ""), ("ended", "stopped")]


def test_the_end_says_what_the_server_had_and_for_how_long():
    had = fact("granted", 100.0, accelerator="a100", gpus=2)
    record = noted(had, fact("started", 130.0), fact("ended", 400.0, reason="out-of-memory"))

    end = record.facts[-1]
    assert (end.accelerator, end.gpus, end.seconds) == ("a100", 2, 300.0)


def test_a_clock_that_is_set_back_makes_no_negative_time():
    assert noted(fact("granted", 100.0), fact("ended", 40.0)).facts[-1].seconds == 0


def test_a_server_that_a_restarted_hub_finds_running_has_not_started_again():
    before = [fact("granted", 1.0), fact("started", 2.0, phases={"scheduled": 1.0})]
    record = noted(fact("started", 10.0))  # the hub takes it as up before the files are read

    record.restore(before)
    record.note(fact("ended", 11.0))

    assert told(record) == [("granted", ""), ("started", ""), ("ended", "")]
    assert record.facts[-1].seconds == 10


async def test_an_end_that_is_noted_before_the_files_are_read_is_that_of_an_earlier_server():
    heard = []
    end = fact("ended", 10.0, reason="deleted")  # a restarted hub finds its pod gone
    facts = fact("refused", 5.0, "bob"), end, fact("granted", 11.0)
    record = noted(*facts, readers=[heard.append])

    earlier = [fact("granted", 1.0, accelerator="a100", gpus=2), fact("started", 2.0)]
    await record.tell(record.restore(earlier))

    assert [(it.happened, it.user) for it in record.facts] == [
        *(("granted", "ann"), ("started", "ann"), ("refused", "bob")),
        *(("ended", "ann"), ("granted", "ann")),
    ]
    end = record.facts[3]
    assert (end.reason, end.accelerator, end.gpus, end.seconds) == ("deleted", "a100", 2, 9.0)
    assert [it.happened for it in heard] == ["refused", "granted", "ended"]
    assert heard[-1] == end
    assert record.open["ann", ""].at == 11


async def test_an_end_is_noted_once_if_an_earlier_hub_has_noted_it_too():
    heard = []
    record = noted(fact("ended", 10.0), readers=[heard.append])

    earlier = [fact("granted", 1.0), fact("ended", 9.0, reason="stopped")]
    await record.tell(record.restore(earlier))
    record.note(fact("ended", 11.0))

    assert told(record) == [("granted", ""), ("ended", "stopped")]
    assert not heard


def test_early_facts_stay_in_their_order_if_a_clock_is_set_back():
    record = noted(fact("granted", 100.0), fact("started", 40.0), fact("ended", 41.0))

    record.restore([])

    assert [it.happened for it in record.facts] == ["granted", "started", "ended"]
    assert not record.open


def test_the_early_ends_of_all_servers_do_not_hold_the_hub_up():
    everybody = [f"user-{number}" for number in range(5000)]
    record = noted(*(fact("ended", reason="deleted", user=it) for it in everybody))
    earlier = [fact(it, user=user) for user in everybody for it in ("granted", *["idle"] * 9)]

    began = process_time()
    record.restore(earlier)

    assert process_time() - began < 1
    assert not record.open


def test_a_server_of_a_hub_with_no_earlier_record_is_open_from_its_first_fact():
    assert noted(fact("started", 10.0)).open["ann", ""].at == 10


def test_a_reader_that_fails_keeps_nothing_from_the_others():
    heard = []

    def fails(_):
        raise RuntimeError("broken")

    noted(fact("granted"), readers=[fails, heard.append])

    assert [it.happened for it in heard] == ["granted"]


async def test_early_ends_are_told_in_turns_with_other_work():
    heard = []
    everybody = [f"user-{number}" for number in range(100)]
    record = noted(*(fact("ended", user=it) for it in everybody), readers=[heard.append])
    earlier = [fact("granted", user=user) for user in everybody]

    telling = asyncio.create_task(record.tell(record.restore(earlier)))
    counts = []
    while not telling.done():
        counts.append(len(heard))
        await asyncio.sleep(0)

    assert [it.user for it in heard] == everybody
    assert len(set(counts)) >= 100


async def test_the_end_of_an_earlier_server_is_told_before_its_next_start():
    heard, users = [], ("ann", "bob", "eve")
    record = noted(*(fact("ended", 10.0, it) for it in users), readers=[heard.append])
    earlier = [fact("granted", 1.0, user) for user in users]

    telling = asyncio.create_task(record.tell(record.restore(earlier)))
    await asyncio.sleep(0)
    record.note(fact("refused", 11.0, "tom"))
    record.note(fact("granted", 12.0, "eve"))
    await telling

    assert [(it.happened, it.user) for it in heard] == [
        *(("ended", "ann"), ("refused", "tom"), ("ended", "eve"), ("granted", "eve")),
        ("ended", "bob"),
    ]


def test_refusals_of_the_last_day_are_counted_by_reason():
    last = 1_000_000.0
    refused = (87_000, "busy"), (86_000, "busy"), (2, "limit"), (0, "busy")
    record = noted(*(fact("refused", last - ago, reason=it) for ago, it in refused))
    record.note(fact("granted", last))

    assert record.refusals(last) == (("busy", 2), ("limit", 1))
    assert record.refusals(last + 86_399) == (("busy", 1),)


def test_refusals_of_the_last_day_are_counted_also_after_a_clock_was_ahead():
    times = 1_000_000.0, 9_000_000.0, 1_000_001.0
    record = noted(*(fact("refused", it, reason="busy") for it in times))

    assert record.refusals(1_000_002.0) == (("busy", 2),)
    assert record.refusals(1_200_000.0) == ()


def test_refusals_that_an_earlier_hub_has_kept_count_once():
    record = noted(fact("refused", 1_000.0, reason="busy"))

    record.restore([fact("refused", 900.0, reason="limit")])

    assert record.refusals(1_000.0) == (("limit", 1), ("busy", 1))


def test_no_more_refusals_are_counted_than_facts_are_kept(monkeypatch):
    monkeypatch.setattr(record_module, "MOST_FACTS", 2)

    record = noted(*(fact("refused", reason=it) for it in ("busy", "limit", "limit")))

    assert record.refusals(1_000_000.0) == (("limit", 2),)


def test_a_start_that_would_have_been_refused_and_failed_cost_its_owner_that_time():
    record = Record()
    for it in (
        fact("overruled", 100.0, reason="impossible"),
        fact("granted", 100.0),
        fact("ended", 400.0, reason="not-scheduled"),
        fact("refused", 500.0, "bob", reason="limit"),
        fact("granted", 600.0, "eve"),
    ):
        record.note(it)

    found = report(record.facts)

    assert found == RefusalReport(
        since=100.0,
        until=600.0,
        starts=3,
        refused=1,
        overruled=1,
        by_reason=(("impossible", 1),),
        failed=1,
        waited=300.0,
    )


def test_one_that_became_a_server_is_no_failure_when_it_ends():
    record = Record()
    for happened in ("overruled", "granted", "started", "ended"):
        record.note(fact(happened))

    found = report(record.facts)

    assert (found.overruled, found.failed, found.started) == (1, 0, 1)


def test_what_becomes_of_a_later_start_says_nothing_of_one_whose_end_is_not_known():
    cut = fact("overruled", reason="busy"), fact("granted")  # then the hub was killed

    for later in (
        [],
        [fact("granted"), fact("started")],
        [fact("granted"), fact("ended", seconds=60)],
    ):
        found = report([*cut, *later])

        assert (found.overruled, found.failed, found.started, found.waited) == (1, 0, 0, 0)


def test_without_facts_everything_is_zero():
    assert report([]) == RefusalReport()

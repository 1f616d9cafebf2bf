"""What `preflight: warn` would have spared people."""

from gpuspawner.use.record import Record
from gpuspawner.use.refusal_report import RefusalReport, report
from tests.unit.use.facts import fact


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

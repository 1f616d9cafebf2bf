"""The simulation of the documentation: it serves everybody once, and the same each time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.scheduling.live import trace as the_trace
from tests.simulation.__main__ import main
from tests.simulation.cluster import Cluster
from tests.simulation.idle import LENGTHS, WARNING, simulated
from tests.simulation.replay import Outcome, Visit, play
from tests.simulation.results import quantile
from tests.simulation.told import Telling, Told, told, weeks
from tests.simulation.ways import BestEffort, InLine, InOrder, TryAgain, Way
from tests.simulation.workloads import Workload, impatient, trace, university, with_lifetimes

ALL = (InLine, InOrder, BestEffort, TryAgain)
LARGE = (("t4", "t4", 4), ("a100", "a100", 8))


def small_week(seed: int) -> Workload:
    return replace(university(seed, people=150), nodes=LARGE)


def run(workload: Workload, way: Callable[[Cluster], Way]) -> Outcome:
    return play(workload.nodes, workload.visits, way)


@pytest.mark.parametrize("way", ALL)
@pytest.mark.parametrize("people", [small_week, lambda seed: with_lifetimes(small_week(seed))])
def test_everybody_is_served_once(way, people) -> None:
    workload = people(1)
    outcome = run(workload, way)

    waits = [wait for them in outcome.waits.values() for wait in them]
    assert len(waits) == len(workload.visits)
    assert outcome.unserved == 0
    assert min(waits) >= 0


@pytest.mark.parametrize("way", ALL)
def test_who_gives_up_isnt_served(way) -> None:
    workload = impatient(small_week(1), 1)
    patience = max(it.patience for it in workload.visits)
    outcome = run(workload, way)

    waits = [wait for them in outcome.waits.values() for wait in them]
    assert 0 < outcome.gave_up.total() == len(workload.visits) - len(waits)
    assert max(waits) < patience


@pytest.mark.parametrize("way", ALL)
def test_the_same_seed_gives_the_same_result(way) -> None:
    assert run(small_week(3), way) == run(small_week(3), way)
    assert run(small_week(3), way) != run(small_week(4), way)


@pytest.mark.parametrize("way", [InLine, InOrder, BestEffort])
def test_gpus_are_in_use_for_as_long_as_servers_last(way) -> None:
    visits = [Visit("a", 0, 4, 100), Visit("b", 50, 4, 100), Visit("late", 400, 4, 100)]
    outcome = play([("t4", "t4", 4)], visits, way)

    assert outcome.use.used == 4 * 200
    assert outcome.use.there == 4 * 400
    assert outcome.waits == {4: [0, 50, 0]}
    assert outcome.contended.share == 1


@pytest.mark.parametrize("seed", range(3))
def test_no_large_server_waits_as_long_in_line_as_if_people_try_again(seed) -> None:
    line, tries = run(small_week(seed), InLine), run(small_week(seed), TryAgain)

    assert max(line.waits[8]) < max(tries.waits[8])


def test_known_ends_let_short_servers_go_ahead_in_line_and_delay_nobody() -> None:
    visits = [
        Visit("runs", 0, 1, 1000, lifetime=1000),
        Visit("large", 1, 4, 100, lifetime=200),
        Visit("short", 2, 1, 100, lifetime=200),
        Visit("long", 3, 1, 5000, lifetime=5000),
    ]
    outcome = play([("t4", "t4", 4)], visits, InLine)

    assert outcome.waits == {1: [0, 0, 1097], 4: [999]}


def test_who_waits_is_told_of_those_before_and_counted_once() -> None:
    """Each comes while the first has the only GPU; the last ten are told of those before."""
    visits = [
        Visit("first", 0, 1, 600),
        *(Visit(f"p{it}", 600 * it + 300, 1, 600) for it in range(18)),
    ]
    found = Told()
    play([("t4", "t4", 1)], visits, lambda cluster: Telling(cluster, found))

    assert [wait for _, wait in found.waits] == [300] * 18
    assert (found.share(), found.covered(), found.width()) == (10 / 18, 1, 1)


def test_weeks_one_after_the_other_have_all_their_visits() -> None:
    one, made = university(3), weeks(1, 3)

    assert made.nodes == one.nodes
    assert [replace(it, person=it.person[2:]) for it in made.visits][: len(one.visits)] == [
        *one.visits
    ]
    assert max(it.at for it in made.visits) > 14 * 24 * 3600


def test_about_eight_of_ten_wait_as_long_as_they_were_told() -> None:
    found = told(weeks, range(1))

    assert found.share() > 0.8
    assert 0.65 < found.covered() < 0.9


def waits(way: Callable[[Cluster], Way]) -> dict[int, list[float]]:
    visits = [
        Visit("runs", 0, 1, 1000, "t4"),
        Visit("large", 1, 4, 100, "t4"),
        Visit("small", 2, 1, 100, "t4"),
        Visit("other", 3, 1, 100, "a100"),
    ]
    return dict(play(LARGE, visits, way).waits)


def test_in_order_nobody_goes_ahead_on_the_same_nodes() -> None:
    assert waits(InOrder) == {1: [0, 0, 1098], 4: [999]}


def test_in_kueues_order_others_go_ahead_while_the_first_doesnt_fit() -> None:
    assert waits(BestEffort) == {1: [0, 0, 0], 4: [999]}


def test_people_who_try_again_dont_keep_anything_free_for_others() -> None:
    assert waits(TryAgain)[1] == [0, 0, 0]
    assert waits(TryAgain)[4][0] > 999


def test_more_frequent_tries_find_room_sooner() -> None:
    def longest(seconds: float) -> float:
        outcome = run(small_week(1), lambda cluster: TryAgain(cluster, seconds))
        return quantile([it for them in outcome.waits.values() for it in them], 0.9)

    assert longest(1) < longest(3600)


def test_the_trace_is_played_on_nodes_of_all_sizes() -> None:
    workload = trace(1)

    assert {gpus for _, _, gpus in workload.nodes} >= {2, 8}
    assert {it.gpus for it in workload.visits} == {1, 2, 4, 8}
    assert min(it.at for it in workload.visits) >= 0
    assert max(it.at for it in workload.visits) < 7 * 24 * 3600


def test_without_the_trace_only_the_week_is_played(monkeypatch, tmp_path, capsys) -> None:
    monkeypatch.setattr(the_trace, "DATA", tmp_path)
    monkeypatch.setattr("sys.argv", ["simulation", "--seeds", "1"])
    main()

    printed = capsys.readouterr().out
    assert "a university's week" in printed
    assert "The trace isn't there" in printed
    assert "| 4 weeks of a university |" in printed


def test_no_job_is_stopped_and_a_shorter_time_gives_more_back() -> None:
    found = simulated([3], people=200)

    assert all(it.jobs > 20 for it in found.values())
    assert not any(it.jobs_stopped for it in found.values())
    assert all(it.warned >= WARNING for it in found.values())
    shares = [found[minutes].back / found[minutes].idle for minutes in LENGTHS]
    assert shares == sorted(shares, reverse=True)

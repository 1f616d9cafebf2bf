"""What a ClusterQueue has left, alone and in cohorts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kueue.quota import QuotaError
from tests.unit.makers.kueue_worlds import GPU, Plain, cohort, known, pool, queue, read

KEY = ("t4", GPU)


def figures(name: str, *objects: Plain) -> tuple[int, int]:
    """Return what a ClusterQueue has left, and the most that it could have."""
    node = known(*objects).pool(name)
    return node.available(KEY), node.most(KEY)


def gpus(nominal: int, **limits: int) -> dict[str, str]:
    return {"nominalQuota": str(nominal), **{it: str(limits[it]) for it in limits}}


def test_alone_it_has_what_is_not_used() -> None:
    assert figures("a", pool("a", gpus(8), used=6)) == (2, 8)


def test_more_use_than_quota_leaves_less_than_nothing() -> None:
    assert figures("a", pool("a", gpus(4), used=6)) == (-2, 4)


def test_in_a_cohort_it_can_borrow_what_others_don_t_use() -> None:
    others = pool("b", gpus(4), used=1, cohortName="all")
    assert figures("a", pool("a", gpus(2), used=2, cohortName="all"), others) == (3, 6)


def test_a_cohort_is_named_otherwise_in_v1beta1() -> None:
    others = pool("b", gpus(4), cohort="all")
    assert figures("a", pool("a", gpus(2), cohort="all"), others) == (6, 6)


def test_nobody_borrows_more_than_the_own_limit() -> None:
    mine = pool("a", gpus(2, borrowingLimit=1), used=2, cohortName="all")
    assert figures("a", mine, pool("b", gpus(4), cohortName="all")) == (1, 3)


def test_what_is_not_lent_stays_with_its_owner() -> None:
    others = pool("b", gpus(4, lendingLimit=1), cohortName="all")
    mine = pool("a", gpus(2), used=2, cohortName="all")
    assert figures("a", mine, others) == (1, 3)
    assert figures("b", mine, others) == (4, 6)


def test_a_cohort_borrows_from_the_cohorts_beside_it() -> None:
    objects = (
        pool("a", gpus(1), used=1, cohortName="left"),
        pool("b", gpus(2), cohortName="right"),
        cohort("left", "all"),
        cohort("right", "all"),
    )
    assert figures("a", *objects) == (2, 3)


def test_a_cohort_above_itself_can_t_be_read() -> None:
    objects = pool("a", gpus(1), cohortName="x"), cohort("x", "y"), cohort("y", "x")
    with pytest.raises(QuotaError, match="above itself"):
        figures("a", *objects)


def test_an_amount_that_is_no_quantity_can_t_be_read() -> None:
    with pytest.raises(QuotaError):
        figures("a", pool("a", {"nominalQuota": "many"}))


small = st.integers(0, 8)
maybe = st.none() | small


@st.composite
def teams(draw: st.DrawFn) -> list[dict[str, Any]]:
    """ClusterQueues of one cohort, whose use came about by what was available."""
    return [
        {"nominal": draw(small), "borrowing": draw(maybe), "lending": draw(maybe), "used": 0}
        for _ in range(draw(st.integers(1, 4)))
    ]


def written(team: dict[str, Any]) -> dict[str, str]:
    limits = {"borrowingLimit": team["borrowing"], "lendingLimit": team["lending"]}
    told = {name: str(limit) for name, limit in limits.items() if limit is not None}
    return {"nominalQuota": str(team["nominal"]), **told}


def all_of(them: list[dict[str, Any]]) -> list[Plain]:
    return [
        pool(f"team-{number}", written(it), used=it["used"], cohortName="all")
        for number, it in enumerate(them)
    ]


@given(teams(), st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=20))
def test_whoever_takes_only_what_is_available_keeps_every_limit(them, wishes) -> None:
    for number, wish in wishes:
        team = them[number % len(them)]
        left, most = figures(f"team-{number % len(them)}", *all_of(them))
        assert left <= most
        if wish <= left:
            team["used"] += wish

    assert sum(it["used"] for it in them) <= sum(it["nominal"] for it in them)
    for it in them:
        if it["borrowing"] is not None:
            assert it["used"] <= it["nominal"] + it["borrowing"]
    for number, it in enumerate(them):
        if it["lending"] is not None:
            left, _ = figures(f"team-{number}", *all_of(them))
            assert left >= it["nominal"] - it["lending"] - it["used"]


@given(teams())
def test_nobody_has_less_than_the_own_quota_while_all_keep_to_theirs(them) -> None:
    for number, it in enumerate(them):
        left, most = figures(f"team-{number}", *all_of(them))
        assert left == most >= it["nominal"]


def test_quotas_are_read_anew_only_if_they_or_their_use_have_changed() -> None:
    objects = known(pool("a", gpus(8), used=6))
    first = objects.pool("a")
    idle: Plain = pool("a", gpus(8), used=6)
    status = {**idle["status"], "pendingWorkloads": 7}

    objects.put(read({**idle, "status": status}))
    objects.put(read(queue()))
    assert objects.pool("a") is first

    objects.put(read(pool("a", gpus(8), used=7)))
    assert objects.pool("a").available(KEY) == 1
    objects.put(read(pool("a", gpus(9), used=7)))
    assert objects.pool("a").available(KEY) == 2
    objects.remove("ClusterQueue", "", "a")
    assert not objects.cluster_queue("a")

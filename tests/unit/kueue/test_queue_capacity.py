"""What a ClusterQueue could give at most, alone and in cohorts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.kueue import ClusterQueue, Cohort
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kueue.queue_capacity import CohortError, QueueCapacity
from tests.unit.makers.kueue_worlds import GPU, Plain, cohort, known, pool

KEY = ("t4", GPU)


def most(name: str, *objects: Plain) -> int:
    """Return the most that a ClusterQueue could have."""
    found = known(*objects)
    queue = found.find(ClusterQueue, name)
    assert queue is not None
    return QueueCapacity(found.every(ClusterQueue), found.every(Cohort)).most(queue, KEY)


def gpus(nominal: int, **limits: int) -> dict[str, str]:
    return {"nominalQuota": str(nominal), **{it: str(limits[it]) for it in limits}}


def test_alone_it_has_its_quota_whatever_is_used() -> None:
    assert most("a", pool("a", gpus(8), used=9)) == 8


def test_in_a_cohort_it_can_borrow_what_others_have() -> None:
    others = pool("b", gpus(4), used=4, cohortName="all")
    assert most("a", pool("a", gpus(2), cohortName="all"), others) == 6


def test_a_cohort_is_named_otherwise_in_v1beta1() -> None:
    others = pool("b", gpus(4), cohort="all")
    assert most("a", pool("a", gpus(2), cohort="all"), others) == 6


def test_nobody_borrows_more_than_the_own_limit() -> None:
    mine = pool("a", gpus(2, borrowingLimit=1), cohortName="all")
    assert most("a", mine, pool("b", gpus(4), cohortName="all")) == 3


def test_what_is_not_lent_stays_with_its_owner() -> None:
    others = pool("b", gpus(4, lendingLimit=1), cohortName="all")
    mine = pool("a", gpus(2), cohortName="all")
    assert most("a", mine, others) == 3
    assert most("b", mine, others) == 6


def test_a_cohort_borrows_from_the_cohorts_beside_it() -> None:
    objects = (
        pool("a", gpus(1), cohortName="left"),
        pool("b", gpus(2), cohortName="right"),
        cohort("left", "all"),
        cohort("right", "all"),
    )
    assert most("a", *objects) == 3


def test_a_cohort_has_quota_and_limits_of_its_own() -> None:
    quotas = [{"coveredResources": [GPU], "flavors": [{"name": "t4", "resources": []}]}]
    quotas[0]["flavors"][0]["resources"] = [{"name": GPU, **gpus(1, borrowingLimit=2)}]
    left = cohort("left", "all")
    left["spec"]["resourceGroups"] = quotas

    assert most("a", pool("a", gpus(1), cohortName="left"), left) == 2
    others = pool("b", gpus(8), cohortName="all")
    assert most("a", pool("a", gpus(1), cohortName="left"), left, others) == 4


def test_a_cohort_above_itself_can_t_be_read() -> None:
    objects = pool("a", gpus(1), cohortName="x"), cohort("x", "y"), cohort("y", "x")
    with pytest.raises(CohortError, match="above itself"):
        most("a", *objects)


def test_a_circle_elsewhere_says_nothing_of_others() -> None:
    assert most("a", pool("a", gpus(1)), cohort("x", "y"), cohort("y", "x")) == 1


def test_an_amount_that_is_no_quantity_can_t_be_read() -> None:
    with pytest.raises(QuantityError):
        most("a", pool("a", {"nominalQuota": "many"}))


small = st.integers(0, 8)
maybe = st.none() | small
TEAMS = st.lists(
    st.fixed_dictionaries({"nominal": small, "borrowing": maybe, "lending": maybe}),
    min_size=1,
    max_size=4,
)


def written(team: dict[str, Any]) -> dict[str, str]:
    limits = {"borrowingLimit": team["borrowing"], "lendingLimit": team["lending"]}
    told = {name: str(limit) for name, limit in limits.items() if limit is not None}
    return {"nominalQuota": str(team["nominal"]), **told}


@given(TEAMS)
def test_each_team_could_have_its_own_and_what_the_others_lend_up_to_its_limit(them) -> None:
    objects = [pool(f"team-{at}", written(it), cohortName="all") for at, it in enumerate(them)]
    lent = [
        it["nominal"] if it["lending"] is None else min(it["nominal"], it["lending"]) for it in them
    ]

    for at, it in enumerate(them):
        others = sum(lent) - lent[at]
        borrowed = others if it["borrowing"] is None else min(others, it["borrowing"])
        assert most(f"team-{at}", *objects) == it["nominal"] + borrowed

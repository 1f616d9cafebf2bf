"""What a ClusterQueue could give at most, alone and in cohorts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.kueue import ClusterQueue, Cohort
from gpuspawner.kube.quantity import QuantityError
from gpuspawner.kueue.queue_capacity import CohortError, QueueCapacity
from tests.unit.makers.kueue_worlds import GPU, cohort, known, pool

KEY = ("t4", GPU)


def most(name, *objects):
    """Return the most that a ClusterQueue could have."""
    found = known(*objects)
    queue = found.find(ClusterQueue, name)
    assert queue is not None
    return QueueCapacity(found.every(ClusterQueue), found.every(Cohort)).most(queue, KEY)


def gpus(nominal, **limits):
    return {"nominalQuota": str(nominal), **{it: str(limits[it]) for it in limits}}


def test_a_cohort_is_named_otherwise_in_v1beta1():
    others = pool("b", gpus(4), cohort="all")
    assert most("a", pool("a", gpus(2), cohort="all"), others) == 6


def test_a_cohort_borrows_from_the_cohorts_beside_it():
    objects = (
        pool("a", gpus(1), cohortName="left"),
        pool("b", gpus(2), cohortName="right"),
        cohort("left", "all"),
        cohort("right", "all"),
    )
    assert most("a", *objects) == 3


def test_a_cohort_has_quota_and_limits_of_its_own():
    quotas = [{"coveredResources": [GPU], "flavors": [{"name": "t4", "resources": []}]}]
    quotas[0]["flavors"][0]["resources"] = [{"name": GPU, **gpus(1, borrowingLimit=2)}]
    left = cohort("left", "all")
    left["spec"]["resourceGroups"] = quotas

    assert most("a", pool("a", gpus(1), cohortName="left"), left) == 2
    others = pool("b", gpus(8), cohortName="all")
    assert most("a", pool("a", gpus(1), cohortName="left"), left, others) == 4


def test_a_cohort_above_itself_can_t_be_read():
    objects = pool("a", gpus(1), cohortName="x"), cohort("x", "y"), cohort("y", "x")
    with pytest.raises(CohortError, match="above itself"):
        most("a", *objects)


def test_a_circle_elsewhere_says_nothing_of_others():
    assert most("a", pool("a", gpus(1)), cohort("x", "y"), cohort("y", "x")) == 1


def test_an_amount_that_is_no_quantity_can_t_be_read():
    with pytest.raises(QuantityError):
        most("a", pool("a", {"nominalQuota": "many"}))


small = st.integers(0, 8)
maybe = st.none() | small
TEAMS = st.lists(
    st.fixed_dictionaries({"nominal": small, "borrowing": maybe, "lending": maybe}),
    min_size=1,
    max_size=4,
)


def written(team):
    limits = {"borrowingLimit": team["borrowing"], "lendingLimit": team["lending"]}
    told = {name: str(limit) for name, limit in limits.items() if limit is not None}
    return {"nominalQuota": str(team["nominal"]), **told}


@given(TEAMS)
def test_each_team_could_have_its_own_and_what_the_others_lend_up_to_its_limit(them):
    objects = [pool(f"team-{at}", written(it), cohortName="all") for at, it in enumerate(them)]
    lent = [
        it["nominal"] if it["lending"] is None else min(it["nominal"], it["lending"]) for it in them
    ]

    for at, it in enumerate(them):
        others = sum(lent) - lent[at]
        borrowed = others if it["borrowing"] is None else min(others, it["borrowing"])
        assert most(f"team-{at}", *objects) == it["nominal"] + borrowed

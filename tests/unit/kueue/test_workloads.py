"""The place of a workload in its queue."""

from unittest.mock import Mock

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.kueue import Workload, order
from gpuspawner.kube.objects import Undecodable, decode
from gpuspawner.kueue.workloads import hopeless, place_in_queue
from gpuspawner.preflight.kueue import PlaceInQueue
from tests.unit.makers.kueue_worlds import (
    GPU,
    flavor,
    inactive,
    known,
    pool,
    queue,
    workload,
)

QUOTA = {"nominalQuota": "2"}
ASSIGN = "couldn't assign flavors to pod set main: "
NO_MORE = f"insufficient unused quota for {GPU} in flavor t4, 1 more needed"
NO_A100 = NO_MORE.replace("t4", "a100")
PENDING = f"{ASSIGN}{NO_MORE}"
TOO_MUCH = (
    f"{ASSIGN}insufficient quota for nvidia.com/gpu in flavor t4, "
    "previously considered podsets requests (0) + current podset request (3) > maximum capacity (2)"
)
OF_BOTH = (
    f"{TOO_MUCH}, insufficient quota for nvidia.com/gpu in flavor a100, previously considered "
    "podsets requests (0) + current podset request (3) > maximum capacity (1)"
)
MISFIT = "flavor a100 doesn't match node affinity"
TAINTED = "untolerated taint {gpu  NoSchedule <nil>} in flavor a100"


def place(objects, name, gpus=1):
    found = objects.workload_of(f"uid-{name}")
    assert found is not None
    return place_in_queue(objects, found, {GPU: gpus})


def waiting(said=PENDING):
    """A workload of which Kueue has said why it waits."""
    return workload("w", QuotaReserved=said)


def test_those_of_higher_priority_and_those_who_came_earlier_are_ahead():
    objects = known(
        queue(),
        queue("other"),
        pool("team-a", QUOTA, used=2),
        flavor(),
        workload("late", second=3),
        workload("early", second=1),
        workload("of-another-local-queue", second=2, queue="other"),
        workload("urgent", second=9, priority=10),
        workload("has-quota", second=0, QuotaReserved=""),
        workload("has-ended", second=0, Finished=""),
        workload("elsewhere", second=0, queue="unknown"),
    )

    found = {it: place(objects, it) for it in ("urgent", "early", "late")}

    ahead = {name: line.ahead for name, line in found.items() if line}
    assert ahead == {"urgent": 0, "early": 1, "late": 3}
    assert found["early"] == PlaceInQueue("gpus", "team-a", 1)


ONE = {"nominalQuota": "1"}
SIX = {"nominalQuota": "6"}
TWO_IN_USE = pool("team-a", QUOTA, used=2)
CPU_TOO = f"{ASSIGN}insufficient unused quota for cpu in flavor t4, 1 more needed, {NO_MORE}"


@pytest.mark.parametrize(
    ("team", "said", "gpus", "told"),
    [
        (TWO_IN_USE, PENDING, 1, (GPU, 2, 2, False)),
        (TWO_IN_USE, CPU_TOO, 1, (GPU, 2, 2, False)),
        (pool("team-a", QUOTA, used=1), PENDING, 1, (GPU, 1, 2, True)),
        (pool("team-a", QUOTA, SIX, used=2), f"{PENDING}, {MISFIT}", 1, (GPU, 2, 2, False)),
        (pool("team-a", QUOTA, ONE, used=1), f"{PENDING}, {NO_A100}", 2, (GPU, 1, 3, False)),
        (TWO_IN_USE, "it waits for its turn", 1, ()),
        (TWO_IN_USE, PENDING.replace("t4", "gone"), 1, ()),
        (pool("team-a", {"nominalQuota": "many"}), PENDING, 1, ()),
        (pool("team-a", QUOTA), PENDING.replace(GPU, "example.com/other"), 1, ()),
    ],
    ids=[
        "in-use",
        "devices-first",
        "lent",
        "only-tried-flavors",
        "neither-flavor-has-enough",
        "nothing-said",
        "unknown-flavor",
        "unreadable-quota",
        "no-quota",
    ],
)
def test_what_kueue_says_is_short_is_told_with_its_use(team, said, gpus, told):
    objects = known(queue(), team, waiting(said))

    assert place(objects, "w", gpus) == PlaceInQueue("gpus", "team-a", 0, *told)


def test_while_workloads_are_read_again_no_place_is_told():
    objects = known(queue(), TWO_IN_USE, waiting())
    objects.mark_unknown("Workload")

    assert place(objects, "w") == PlaceInQueue("gpus", "team-a", None, GPU, used=2, nominal=2)


def test_a_queue_that_admits_nobody_is_told():
    for local, team in (
        (queue(stopPolicy="Hold"), pool("team-a", QUOTA)),
        (queue(), inactive(pool("team-a", QUOTA), "no check")),
    ):
        found = place(known(local, team, flavor(), workload("w")), "w")

        assert found is not None
        assert found.is_stopped


def test_without_its_queue_a_workload_has_no_place():
    assert place(known(workload("w")), "w") is None


@pytest.mark.parametrize(
    ("said", "is_hopeless"),
    [
        ("", False),
        (PENDING, False),
        (OF_BOTH, True),
        (f"{TOO_MUCH}, {MISFIT}", True),
        (f"{TOO_MUCH}, {TAINTED}", True),
        (f"{ASSIGN}{TAINTED}, {MISFIT.replace('a100', 't4')}", True),
        (f"{ASSIGN}{MISFIT}", False),
        (f"{ASSIGN}flavor t4 not found, {MISFIT}", False),
        ("resource memory unavailable in ClusterQueue", True),
        ("Workload namespace doesn't match ClusterQueue selector", True),
        (f"{OF_BOTH}, {PENDING}", False),
        ("Workload no longer fits", False),
    ],
)
def test_only_what_kueue_could_never_give_is_hopeless(said, is_hopeless):
    objects = known(queue(), pool("team-a", QUOTA, QUOTA), waiting(said))

    assert said_hopeless(objects) == (said if is_hopeless else "")


def test_that_the_last_flavors_could_never_give_enough_says_nothing_of_the_first_ones():
    of_the_second = TOO_MUCH.replace("t4", "a100")
    both = pool("team-a", {"nominalQuota": "4"}, {"nominalQuota": "1"})
    longer_name = pool("team-a", QUOTA, QUOTA, names=("t4", "t4-large"))

    for team, said in ((both, of_the_second), (longer_name, TOO_MUCH.replace("t4", "t4-large"))):
        assert said_hopeless(known(queue(), team, waiting(said))) == ""


def said_hopeless(objects):
    found = objects.workload_of("uid-w")
    assert isinstance(found, Workload)
    return hopeless(objects, found)


CHANGES = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from(["put", "has quota", "unreadable", "gone"]),
        st.sampled_from(["gpus", "other", "elsewhere"]),
        st.integers(0, 2),
        st.integers(0, 3),
    ),
    max_size=30,
)


@given(CHANGES)
def test_whatever_changes_each_place_is_that_among_those_who_wait_now(changes):
    objects = known(queue(), queue("other"), queue("elsewhere", pool="team-b"))
    waiting = {}
    for name, change, local, priority, second in changes:
        waiting.pop(name, None)
        quota = {"QuotaReserved": ""} if change == "has quota" else {}
        plain = workload(name, second=second, queue=local, priority=priority, **quota)
        if change == "gone":
            objects.remove("Workload", "jhub", name)
        elif change == "unreadable":
            objects.put(Undecodable("Workload", "jhub", name, "", "no"))
        else:
            objects.put(decode("Workload", msgspec.json.encode(plain)))
            found = objects.workload_of(f"uid-{name}")
            assert found is not None
            if change == "put" and local != "elsewhere":
                waiting[name] = found

        orders = sorted(map(order, waiting.values()))
        assert objects.waiting_for("team-a") == len(orders)
        assert [objects.waiting_for("team-a", it) for it in orders] == list(range(len(orders)))
        for it in "abcd":
            known_one = objects.find(Workload, it, "jhub")
            expected = known_one if isinstance(known_one, Workload) else None
            assert objects.workload_of(f"uid-{it}") == expected


def test_queues_in_which_nobody_waits_cost_a_place_nothing_and_are_forgotten(monkeypatch):
    """If each user has a namespace, each has a queue, and whoever waits asks once a second."""
    objects = known(queue(), workload("a"), workload("b", queue="gone"))
    monkeypatch.setattr(objects, "every", Mock(side_effect=AssertionError("all were looked at")))

    assert objects.waiting_for("team-a") == 1
    for name in "ab":
        objects.remove("Workload", "jhub", name)
    assert objects.waiting_for("team-a") == 0
    assert not objects._waiting

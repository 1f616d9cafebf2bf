"""What a queue says of a pod before the pod exists."""

from unittest.mock import Mock

import pytest

from gpuspawner.cluster.kueue_objects import KueueObjects
from gpuspawner.kueue import queue_capacity
from gpuspawner.kueue.queues import Queues
from gpuspawner.preflight.kueue import Closed, Never, PlaceInQueue, WhyClosed
from gpuspawner.scheduling.state import ClusterState
from localcluster.kueue.objects import cluster_queue
from tests.unit.makers.kueue_worlds import (
    GPU,
    flavor,
    inactive,
    known,
    orphan,
    pod,
    pool,
    queue,
    read,
    workload,
)

QUOTA = {"nominalQuota": "2"}
T4 = flavor("t4", nodeLabels={"gpu": "t4"})
A100 = flavor("a100", nodeLabels={"gpu": "a100"})


def queues(*objects, store=None):
    return Queues(
        known(*objects) if store is None else store, ClusterState.from_objects(nodes=[], pods=[])
    )


def answer(*objects, gpus=1, **spec):
    return queues(*objects).ask("gpus", pod(gpus, **spec))


def requesting(resource, amount):
    return [{"name": "notebook", "resources": {"requests": {resource: amount}}}]


@pytest.mark.parametrize("used", [0, 2, 8])
def test_whatever_is_in_use_the_queue_says_only_who_waits_already(used):
    found = answer(queue(), pool("team-a", QUOTA, used=used), T4, workload("a"), workload("b"))

    assert found == PlaceInQueue("gpus", "team-a", 2)


def test_nothing_is_left_of_a_queue_in_which_nobody_waits():
    store = known(workload("a", queue="no-such-queue"))
    store.remove("Workload", "jhub", "a")

    assert store._waiting == store._by_pod == {}


def test_a_pod_may_have_as_much_as_the_largest_flavor_could_give():
    objects = queue(), pool("team-a", QUOTA, {"nominalQuota": "4"}), T4, A100

    assert answer(*objects, gpus=4) == PlaceInQueue("gpus", "team-a", 0)
    assert answer(*objects, gpus=5) == Never("gpus", GPU, asked=5, most=4)


@pytest.mark.parametrize(
    ("resource", "enough", "more", "most"),
    [("cpu", "1500m", "1501m", 1500), ("memory", "2Gi", "2147483649", 2**31)],
)
def test_quotas_count_in_the_units_of_requests(resource, enough, more, most):
    quotas = {"cpu": {"nominalQuota": "1500m"}, "memory": {"nominalQuota": "2Gi"}}
    objects = queue(), cluster_queue("team-a", {"t4": quotas}), T4
    found = [answer(*objects, gpus=0, containers=requesting(resource, it)) for it in (enough, more)]

    assert found == [
        PlaceInQueue("gpus", "team-a", 0),
        Never("gpus", resource, asked=most + 1, most=most),
    ]


def test_the_pod_itself_counts_toward_a_quota_of_pods():
    none = cluster_queue("team-a", {"t4": {"pods": {"nominalQuota": "0"}}})

    assert answer(queue(), none, T4, gpus=0) == Never("gpus", "pods", asked=1, most=0)


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ((pool("team-a", QUOTA), T4), WhyClosed.NO_QUEUE),
        ((orphan(queue()), T4), WhyClosed.NO_POOL),
        ((queue(stopPolicy="Hold"), pool("team-a", QUOTA), T4), WhyClosed.STOPPED),
        ((queue(), pool("team-a", QUOTA, stopPolicy="HoldAndDrain"), T4), WhyClosed.STOPPED),
    ],
)
def test_a_missing_or_stopped_queue_takes_nobody(objects, why):
    assert answer(*objects) == Closed("gpus", why)


def test_a_quota_that_the_hub_alone_does_not_see_is_no_reason_for_a_no():
    """If both queues are new, the LocalQueue's watch may be ahead of the ClusterQueue's."""
    assert answer(queue(), T4) == PlaceInQueue("gpus")


def test_a_queue_that_kueue_calls_inactive_takes_nobody_even_if_there_is_quota():
    lacks = inactive(pool("team-a", QUOTA), "no check")

    assert answer(queue(), lacks, T4) == Closed("gpus", WhyClosed.INACTIVE, "no check")


def test_a_resource_without_quota_is_no_reason_for_a_no():
    containers = requesting("memory", "64Gi")

    assert isinstance(
        answer(queue(), pool("team-a", QUOTA), T4, containers=containers), PlaceInQueue
    )


def test_what_can_t_be_read_is_never_a_no():
    unlisted = KueueObjects()
    unreadable = known(queue(), T4, {**pool("team-a", QUOTA), "spec": {"resourceGroups": 5}})
    no_amount = known(queue(), T4, pool("team-a", {"nominalQuota": "many"}))
    circle = {"kind": "Cohort", "metadata": {"name": "x"}, "spec": {"parentName": "x"}}
    in_circle = known(queue(), T4, pool("team-a", {"nominalQuota": "0"}, cohortName="x"), circle)

    for objects in (unlisted, unreadable, no_amount, in_circle):
        assert isinstance(queues(store=objects).ask("gpus", pod()), PlaceInQueue)
    assert queues(store=unlisted).ask("gpus", pod()) == PlaceInQueue("gpus")


def test_each_toleration_of_a_flavor_may_come_to_a_pod():
    [t4, a100] = ({"key": it, "operator": "Exists"} for it in ("t4", "a100"))
    two = flavor("t4", tolerations=[t4]), flavor("a100", tolerations=[a100, t4])
    asking = queues(queue(), pool("team-a", QUOTA, QUOTA), *two)

    assert asking.tolerant("gpus", pod()) == pod(tolerations=[t4, a100])


@pytest.mark.parametrize(
    "spec",
    [
        {"admissionChecksStrategy": {"admissionChecks": [{"name": "nodes"}]}},
        {"admissionChecks": ["nodes"]},
    ],
)
def test_nobody_knows_what_an_admission_check_makes_of_a_pod(spec):
    assert queues(queue(), pool("team-a", QUOTA, **spec), T4).tolerant("gpus", pod()) is None
    assert queues(store=KueueObjects()).tolerant("gpus", pod()) is None
    assert queues().tolerant("gpus", pod()) is None


def test_quotas_are_read_once_however_many_pods_are_judged_until_something_changes(monkeypatch):
    """A refusal judges many alternatives in one tick, and a cohort may have hundreds of teams."""
    names = "t4", "a100", "l4"
    teams = [pool(f"team-{it}", *[QUOTA] * 3, names=names, cohortName="all") for it in range(50)]
    objects = known(queue(pool="team-0"), *teams)
    asked = queues(store=objects)
    reads = Mock(side_effect=queue_capacity.quotas)
    monkeypatch.setattr(queue_capacity, "quotas", reads)

    assert asked.ask("gpus", pod(100)) == PlaceInQueue("gpus", "team-0", 0)
    objects.put(read(workload("w", QuotaReserved="")))
    assert asked.ask("gpus", pod(101)) == Never("gpus", GPU, 101, 100)
    assert reads.call_count == len(teams) + 1  # and the cohort itself
    adds = Mock(side_effect=queue_capacity.amount)
    monkeypatch.setattr(queue_capacity, "amount", adds)
    assert asked.ask("gpus", pod(102)) == Never("gpus", GPU, 102, 100)
    assert adds.call_count < len(teams)
    objects.remove("ClusterQueue", "", "team-1")
    assert asked.ask("gpus", pod(100)) == Never("gpus", GPU, 100, 98)

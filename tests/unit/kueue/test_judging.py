"""Whether Kueue would admit a pod now, later, or never."""

from __future__ import annotations

import pytest

from gpuspawner.kueue.judging import Closed, Free, Full, Never, Unsure, WhyClosed, judge
from gpuspawner.kueue.objects import KueueObjects
from gpuspawner.kueue.places import PlaceInQueue
from localcluster.kueue.objects import cluster_queue
from tests.unit.makers.kueue_worlds import (
    GPU,
    Plain,
    flavor,
    inactive,
    known,
    pod,
    pool,
    queue,
    workload,
)

QUOTA = {"nominalQuota": "2"}
T4 = flavor("t4", nodeLabels={"gpu": "t4"})
A100 = flavor("a100", nodeLabels={"gpu": "a100"})


def answer(*objects: Plain, gpus: int = 1, **spec: object) -> object:
    return judge(known(*objects), "gpus", pod(gpus, **spec), {GPU: gpus})


def names(choices: object) -> list[list[str]]:
    assert isinstance(choices, Free | Full)
    return [[it.metadata.name for it in flavors] for flavors in choices.choices]


def test_with_quota_left_a_pod_is_admitted() -> None:
    assert names(answer(queue(), pool("team-a", QUOTA, used=1), T4)) == [["t4"]]


def test_without_quota_left_a_pod_waits_behind_those_who_wait_already() -> None:
    found = answer(queue(), pool("team-a", QUOTA, used=2), T4, workload("a"), workload("b"))

    assert isinstance(found, Full)
    assert found.line == PlaceInQueue("gpus", "team-a", 2, GPU, used=2, nominal=2)


def test_a_pod_that_asks_for_more_than_there_could_be_is_never_admitted() -> None:
    found = answer(queue(), pool("team-a", QUOTA), T4, gpus=3)

    assert found == Never("gpus", GPU, asked=3, most=2)


@pytest.mark.parametrize(("resource", "most"), [("cpu", 1500), ("memory", 2 * 2**30)])
def test_quotas_count_in_the_units_of_requests(resource: str, most: int) -> None:
    quotas = {"cpu": {"nominalQuota": "1500m"}, "memory": {"nominalQuota": "2Gi"}}
    objects = known(queue(), cluster_queue("team-a", {"t4": quotas}), T4)

    assert isinstance(judge(objects, "gpus", pod(), {resource: most}), Free)
    more = judge(objects, "gpus", pod(), {resource: most + 1})
    assert more == Never("gpus", resource, asked=most + 1, most=most)


def test_a_pod_for_other_nodes_than_the_queue_has_is_never_admitted() -> None:
    found = answer(queue(), pool("team-a", QUOTA), T4, nodeSelector={"gpu": "a100"})

    assert found == Never("gpus", GPU, asked=1, most=0)


def test_a_label_that_no_flavor_names_doesn_t_matter() -> None:
    found = answer(queue(), pool("team-a", QUOTA), T4, nodeSelector={"zone": "a"})

    assert names(found) == [["t4"]]


def test_only_the_flavors_that_the_pod_selects_count() -> None:
    both = pool("team-a", QUOTA, QUOTA, used=2)
    found = answer(queue(), both, T4, A100, nodeSelector={"gpu": "a100"})

    assert names(found) == [["a100"]]
    assert names(answer(queue(), both, T4, A100)) == [["a100"]]


def test_a_taint_of_the_flavor_must_be_tolerated() -> None:
    tainted = flavor("t4", nodeTaints=[{"key": "gpu", "value": "x", "effect": "NoSchedule"}])
    objects = queue(), pool("team-a", QUOTA), tainted

    assert isinstance(answer(*objects), Never)
    assert isinstance(answer(*objects, tolerations=[{"operator": "Exists"}]), Free)


def test_with_strict_order_nobody_passes_those_ahead() -> None:
    strict = pool("team-a", QUOTA, queueingStrategy="StrictFIFO")
    loose = pool("team-a", QUOTA, queueingStrategy="BestEffortFIFO")

    assert isinstance(answer(queue(), strict, T4, workload("a")), Full)
    assert isinstance(answer(queue(), loose, T4, workload("a")), Free)


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        ((pool("team-a", QUOTA), T4), WhyClosed.NO_QUEUE),
        ((queue(), T4), WhyClosed.NO_POOL),
        ((queue(stopPolicy="Hold"), pool("team-a", QUOTA), T4), WhyClosed.STOPPED),
        ((queue(), pool("team-a", QUOTA, stopPolicy="HoldAndDrain"), T4), WhyClosed.STOPPED),
    ],
)
def test_a_missing_or_stopped_queue_takes_nobody(
    objects: tuple[Plain, ...], why: WhyClosed
) -> None:
    assert answer(*objects) == Closed("gpus", why)


def test_a_queue_that_kueue_calls_inactive_takes_nobody_even_if_there_is_quota() -> None:
    lacks = inactive(pool("team-a", QUOTA), "no check")

    assert answer(queue(), lacks, T4) == Closed("gpus", WhyClosed.INACTIVE, "no check")


def test_a_resource_without_quota_is_no_reason_for_a_no() -> None:
    found = judge(
        known(queue(), pool("team-a", QUOTA), T4), "gpus", pod(), {GPU: 1, "memory": 2**30}
    )

    assert isinstance(found, Free)


def test_what_can_t_be_read_is_never_a_no() -> None:
    unlisted = KueueObjects()
    unreadable = known(queue(), T4, {**pool("team-a", QUOTA), "spec": {"resourceGroups": 5}})
    no_amount = known(queue(), T4, pool("team-a", {"nominalQuota": "many"}))
    topology = known(queue(), pool("team-a", QUOTA), flavor("t4", topologyName="racks"))

    for objects in (unlisted, unreadable, no_amount, topology):
        assert isinstance(judge(objects, "gpus", pod(), {GPU: 1}), Unsure)

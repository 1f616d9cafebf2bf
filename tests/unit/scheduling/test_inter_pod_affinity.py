"""What kube-scheduler's recorded answers don't say of affinity between pods."""

import pytest

from gpuspawner.scheduling import Outcome
from tests.unit.makers.objects import affinity, judge, node, pod, term

NODES = [node(name, labels={"zone": name[0]}) for name in ("a1", "a2", "b1")]
DB = {"app": "db"}


def old(name, place, **fields):
    return pod(name, node=place, **{"labels": DB, **fields})


def test_the_anti_affinity_of_a_pod_on_a_deleted_node_does_not_count():
    guard = old("1", "gone", **affinity(away=[term({"app": "new"})]))
    assert len(judge(pod(labels={"app": "new"}), *NODES, pods=[guard]).feasible) == 3


def test_a_pod_whose_affinity_matches_no_pod_is_busy_and_not_impossible():
    assert judge(pod(**affinity(near=[term(DB)])), *NODES).outcome is Outcome.BUSY
    assert judge(pod(**affinity(near=[term(DB)])), node("c")).outcome is Outcome.IMPOSSIBLE


@pytest.mark.parametrize(
    ("keys", "version", "fits"),
    [
        ("matchLabelKeys", "1", True),
        ("matchLabelKeys", "2", False),
        ("mismatchLabelKeys", "1", False),
        ("mismatchLabelKeys", "2", True),
    ],
)
def test_match_label_keys_of_the_pod_to_place_count(keys, version, fits):
    away = term(DB, **{keys: ["version", "absent"]})
    request = pod(labels={**DB, "version": "2"}, **affinity(away=[away]))
    there = old("x", "a1", labels={**DB, "version": version})
    verdict = judge(request, *NODES, pods=[there])
    assert ("a2" in verdict.feasible) is fits


def test_match_label_keys_of_existing_pods_are_ignored():
    there = old("x", "a1", **affinity(away=[term(DB, matchLabelKeys=["app"])]))
    there["metadata"]["labels"] = {"app": "renamed"}
    assert judge(pod(labels=DB), *NODES, pods=[there]).feasible == ("b1",)

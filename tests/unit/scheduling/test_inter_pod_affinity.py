import pytest

from gpuspawner.scheduling import Outcome
from gpuspawner.scheduling.failures import NotNear, Repelled, TooNear
from tests.unit.makers.objects import affinity, judge, node, pod, term

NODES = [node(name, labels={"zone": name[0]}) for name in ("a1", "a2", "b1")]
DB = {"app": "db"}
NAMESPACES = [{"metadata": {"name": name, "labels": {"team": name}}} for name in ("hub", "other")]


def old(name, place, labels=None, **fields):
    return pod(name, node=place, labels=labels or DB, **fields)


def test_a_pod_with_affinity_fits_near_matching_pods():
    verdict = judge(pod(**affinity(near=[term(DB)])), *NODES, pods=[old("1", "a1")])
    assert verdict.feasible == ("a1", "a2")
    assert verdict.failures["b1"] == (NotNear(),)


def test_the_same_existing_pod_must_match_all_terms():
    wants = affinity(near=[term(DB), term({"tier": "1"}, "kubernetes.io/hostname")])
    apart = [old("1", "a1"), old("2", "a1", {"tier": "1"})]
    assert not judge(pod(**wants), *NODES, pods=apart).feasible
    together = [old("1", "a1", {**DB, "tier": "1"})]
    assert judge(pod(**wants), *NODES, pods=together).feasible == ("a1",)


def test_the_first_pod_with_affinity_to_itself_fits_on_any_node_with_the_label():
    first = pod(labels=DB, **affinity(near=[term(DB)]))
    assert judge(first, *NODES, node("c")).feasible == ("a1", "a2", "b1")


def test_a_pod_with_anti_affinity_does_not_fit_near_matching_pods():
    verdict = judge(pod(**affinity(away=[term(DB)])), *NODES, pods=[old("1", "a1")])
    assert verdict.feasible == ("b1",)
    assert verdict.failures["a2"] == (TooNear(),)


def test_the_anti_affinity_of_existing_pods_excludes_matching_pods():
    guard = old("1", "a1", **affinity(away=[term({"app": "new"})]))
    verdict = judge(pod(labels={"app": "new"}), *NODES, pods=[guard])
    assert verdict.feasible == ("b1",)
    assert verdict.failures["a1"] == (Repelled(),)


@pytest.mark.parametrize(
    ("fields", "repelled"),
    [
        ({"namespaceSelector": {"matchLabels": {"team": "hub"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "other"}}}, False),
        ({"namespaces": ["hub"]}, True),
        ({}, False),
    ],
)
def test_the_anti_affinity_of_pods_in_other_namespaces_counts(fields, repelled):
    guard = old("1", "a1", namespace="other", **affinity(away=[term({"app": "new"}, **fields)]))
    verdict = judge(pod(labels={"app": "new"}), *NODES, pods=[guard], namespaces=NAMESPACES)
    assert ("a1" in verdict.feasible) is not repelled


def test_the_anti_affinity_of_a_pod_on_a_deleted_node_does_not_count():
    guard = old("1", "gone", **affinity(away=[term({"app": "new"})]))
    assert len(judge(pod(labels={"app": "new"}), *NODES, pods=[guard]).feasible) == 3


def test_a_pod_whose_affinity_matches_no_pod_is_busy_and_not_impossible():
    assert judge(pod(**affinity(near=[term(DB)])), *NODES).outcome is Outcome.BUSY
    assert judge(pod(**affinity(near=[term(DB)])), node("c")).outcome is Outcome.IMPOSSIBLE

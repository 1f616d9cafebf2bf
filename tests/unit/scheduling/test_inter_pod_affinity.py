import pytest

from gpuspawner.scheduling import Outcome
from gpuspawner.scheduling.failures import NotNear, Repelled, TooNear
from tests.unit.scheduling.objects import judge, node, pod

NODES = [node(name, labels={"zone": name[0]}) for name in ("a1", "a2", "b1")]
DB = {"app": "db"}
NAMESPACES = [{"metadata": {"name": name, "labels": {"team": name}}} for name in ("hub", "other")]


def term(labels, key="zone", **fields):
    return {"labelSelector": {"matchLabels": labels}, "topologyKey": key, **fields}


def affinity(near=(), away=()):
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "affinity": {
            "podAffinity": {required: list(near)},
            "podAntiAffinity": {required: list(away)},
        }
    }


def old(name, place, labels=None, **fields):
    return pod(name, node=place, labels=labels or DB, **fields)


def test_a_pod_goes_near_to_the_pods_it_wants():
    verdict = judge(pod(**affinity(near=[term(DB)])), *NODES, pods=[old("1", "a1")])
    assert verdict.feasible == ("a1", "a2")
    assert verdict.failures["b1"] == (NotNear(),)


def test_one_pod_must_meet_all_the_terms():
    wants = affinity(near=[term(DB), term({"tier": "1"}, "kubernetes.io/hostname")])
    apart = [old("1", "a1"), old("2", "a1", {"tier": "1"})]
    assert not judge(pod(**wants), *NODES, pods=apart).feasible
    together = [old("1", "a1", {**DB, "tier": "1"})]
    assert judge(pod(**wants), *NODES, pods=together).feasible == ("a1",)


def test_the_first_of_its_kind_may_go_anywhere_with_the_label():
    first = pod(labels=DB, **affinity(near=[term(DB)]))
    assert judge(first, *NODES, node("c")).feasible == ("a1", "a2", "b1")


def test_a_pod_stays_away_from_the_pods_it_avoids():
    verdict = judge(pod(**affinity(away=[term(DB)])), *NODES, pods=[old("1", "a1")])
    assert verdict.feasible == ("b1",)
    assert verdict.failures["a2"] == (TooNear(),)


def test_pods_that_are_there_keep_others_away():
    guard = old("1", "a1", **affinity(away=[term({"app": "new"})]))
    verdict = judge(pod(labels={"app": "new"}), *NODES, pods=[guard])
    assert verdict.feasible == ("b1",)
    assert verdict.failures["a1"] == (Repelled(),)


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "other"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "hub"}}}, False),
    ],
)
def test_a_term_means_its_own_namespace_unless_it_says_otherwise(fields, fits):
    verdict = judge(
        pod(**affinity(near=[term(DB, **fields)])),
        *NODES,
        pods=[old("1", "a1", namespace="other")],
        namespaces=NAMESPACES,
    )
    assert bool(verdict.feasible) is fits


@pytest.mark.parametrize(
    ("fields", "repelled"),
    [
        ({"namespaceSelector": {"matchLabels": {"team": "hub"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "other"}}}, False),
        ({"namespaces": ["hub"]}, True),
        ({}, False),
    ],
)
def test_pods_in_other_namespaces_repel_those_they_mean(fields, repelled):
    guard = old("1", "a1", namespace="other", **affinity(away=[term({"app": "new"}, **fields)]))
    verdict = judge(pod(labels={"app": "new"}), *NODES, pods=[guard], namespaces=NAMESPACES)
    assert ("a1" in verdict.feasible) is not repelled


def test_a_pod_of_a_node_that_is_gone_repels_nobody():
    guard = old("1", "gone", **affinity(away=[term({"app": "new"})]))
    assert len(judge(pod(labels={"app": "new"}), *NODES, pods=[guard]).feasible) == 3


def test_without_the_pods_it_wants_a_pod_waits_and_is_not_impossible():
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
def test_label_keys_of_a_pod_that_is_not_created_yet_count(keys, version, fits):
    away = term(DB, **{keys: ["version", "absent"]})
    request = pod(labels={**DB, "version": "2"}, **affinity(away=[away]))
    there = old("x", "a1", labels={**DB, "version": version})
    verdict = judge(request, *NODES, pods=[there])
    assert ("a2" in verdict.feasible) is fits


def test_label_keys_of_pods_that_are_there_are_in_their_selectors_already():
    there = old("x", "a1", **affinity(away=[term(DB, matchLabelKeys=["app"])]))
    there["metadata"]["labels"] = {"app": "renamed"}
    assert judge(pod(labels=DB), *NODES, pods=[there]).feasible == ("b1",)

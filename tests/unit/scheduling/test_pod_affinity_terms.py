import pytest

from tests.unit.makers.objects import affinity, judge, node, pod, term

NODES = [node(name, labels={"zone": name[0]}) for name in ("a1", "a2", "b1")]
DB = {"app": "db"}
NAMESPACES = [{"metadata": {"name": name, "labels": {"team": name}}} for name in ("hub", "other")]


def old(name, place, labels=None, **fields):
    return pod(name, node=place, labels=labels or DB, **fields)


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
def test_a_term_matches_its_own_namespace_by_default(fields, fits):
    verdict = judge(
        pod(**affinity(near=[term(DB, **fields)])),
        *NODES,
        pods=[old("1", "a1", namespace="other")],
        namespaces=NAMESPACES,
    )
    assert bool(verdict.feasible) is fits


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

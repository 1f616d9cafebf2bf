"""Objects of any shape never raise; verdicts that depend on undecodable objects are unknown."""

import copy
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuspawner.scheduling import ClusterState, Outcome, Why, evaluate, explain
from tests.benchmarks.clusters import gpu_request, node, running_pod
from tests.scheduling.test_vectors import VECTORS, cases, lacks
from tests.unit.makers.objects import cluster

pytestmark = pytest.mark.each_python

[MIXED] = (path for path in VECTORS if path.name.startswith("mixed"))
CASES = [*islice(cases(MIXED), 40)]

ODD = ["", "9" * 22, "1e999999999", "-1", "NaN", "\x00", "\ud800", "🦄", "../..", "a/b"]
texts = st.text(max_size=8) | st.sampled_from(ODD)
scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | texts
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def places(plain, path=()):
    """Yield the path of keys to every value in a plain object."""
    keys = plain if isinstance(plain, dict) else range(len(plain) if isinstance(plain, list) else 0)
    for key, value in ((key, plain[key]) for key in keys):
        yield (*path, key)
        yield from places(value, (*path, key))


@st.composite
def broken_cases(draw):
    case = copy.deepcopy(draw(st.sampled_from(CASES)))
    del case["name"], case["expected"]
    for _ in range(draw(st.integers(min_value=1, max_value=3))):
        path = draw(st.sampled_from(list(places(case))))
        if len(path) == 1:
            continue
        holder = case
        for key in path[:-1]:
            holder = holder[key]
        if isinstance(holder, dict) and draw(st.booleans()):
            del holder[path[-1]]
        else:
            holder[path[-1]] = draw(anything)
        if not isinstance(case["pod"], dict):
            break
    return case


@settings(max_examples=120)
@given(broken_cases())
def test_broken_objects_never_raise(case):
    judge_in_each_way(case)


@pytest.mark.nightly(why="ten thousand broken objects take a minute")
@settings(max_examples=10_000)
@given(broken_cases())
def test_thousands_of_broken_objects_never_raise(case):
    judge_in_each_way(case)


def judge_in_each_way(case):
    pod = case.pop("pod")
    state = ClusterState.from_objects(**case)
    for verdict in (evaluate(state, pod), explain(state, pod)):
        assert isinstance(verdict.message, str)
        assert isinstance(verdict.condition_message, str)
        assert set(verdict.feasible) <= set(state.nodes)
        assert verdict.feasible or verdict.outcome is not Outcome.FITS
        assert lacks(state, pod, verdict)


@settings(max_examples=50)
@given(st.lists(anything, max_size=4), st.lists(anything, max_size=4), anything)
def test_values_that_are_not_objects_never_raise(nodes, pods, pod):
    state = ClusterState.from_objects(nodes=nodes, pods=pods)
    assert evaluate(state, pod).outcome is not Outcome.FITS


def test_a_node_with_200_000_labels_can_be_evaluated():
    labels = {f"label-{number}": "x" * 63 for number in range(200_000)}
    big = node(0, gpu=True)
    big["metadata"]["labels"].update(labels)
    pod = gpu_request(None)
    pod["metadata"]["labels"] = labels
    assert evaluate(cluster(big), pod).outcome is Outcome.FITS


def changed_pod(**spec):
    plain = running_pod(1, 0, gpus=1)
    plain["spec"].update(spec)
    return plain


@pytest.mark.parametrize(
    "status", [7, *({"allocatable": it} for it in ([], {"cpu": {}}, {"cpu": "plenty"}))]
)
def test_a_node_with_a_malformed_status_makes_a_refusal_unknown(status):
    malformed = {**node(0, gpu=True), "status": status}
    verdict = evaluate(cluster(malformed, node(1, gpu=False)), gpu_request(None))
    assert verdict.outcome is Outcome.UNKNOWN
    assert [unknown.why for unknown in verdict.unknown] == [Why.UNDECODABLE_OBJECT]
    assert "node-0" in verdict.unknown[0].detail


def test_an_undecodable_node_does_not_matter_if_another_fits():
    undecodable = {**node(0, gpu=True), "status": 7}
    verdict = evaluate(cluster(undecodable, node(8, gpu=True)), gpu_request())
    assert verdict.outcome is Outcome.FITS
    assert verdict.feasible == ("node-8",)


def test_an_undecodable_pod_makes_only_its_own_node_unknown():
    pod = changed_pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "some"}}}])
    pod["spec"]["nodeName"] = "node-3"
    alone = cluster(node(3, gpu=True), pods=[pod])
    assert evaluate(alone, gpu_request()).outcome is Outcome.UNKNOWN
    both = cluster(node(3, gpu=True), node(8, gpu=True), pods=[pod])
    verdict = evaluate(both, gpu_request())
    assert verdict.outcome is Outcome.FITS
    assert verdict.feasible == ("node-8",)


def test_an_undecodable_pod_does_not_change_an_impossible_verdict():
    pod = changed_pod(containers="none")
    verdict = evaluate(cluster(node(0, gpu=False), pods=[pod]), gpu_request(None))
    assert verdict.outcome is Outcome.IMPOSSIBLE


def test_an_undecodable_pod_that_may_repel_makes_every_fit_unknown():
    pod = changed_pod(affinity={"podAntiAffinity": 5})
    verdict = evaluate(cluster(node(3, gpu=True), pods=[pod]), gpu_request())
    assert verdict.outcome is Outcome.UNKNOWN


def test_thousands_of_undecodable_pods_give_one_reason():
    pods = [{**running_pod(n, n % 500, gpus=1), "spec": 5} for n in range(5_000)]
    nodes = [node(number, gpu=True) for number in range(500)]
    verdict = evaluate(cluster(*nodes, pods=pods), gpu_request(None))
    assert verdict.outcome is Outcome.UNKNOWN
    assert len(verdict.unknown) == 1


def test_an_undecodable_claim_matters_only_to_its_own_pod():
    claim = {"metadata": {"name": "home", "namespace": "team-1"}, "spec": 5}
    state = cluster(node(3, gpu=True), persistentVolumeClaims=[claim])
    assert evaluate(state, gpu_request()).outcome is Outcome.FITS
    pod = gpu_request()
    pod["spec"]["volumes"] = [{"name": "h", "persistentVolumeClaim": {"claimName": "home"}}]
    assert evaluate(state, pod).outcome is Outcome.UNKNOWN


def test_a_pod_with_text_that_is_invalid_in_json_is_unknown():
    pod = gpu_request()
    pod["spec"]["nodeSelector"] = {"a": "\ud800"}
    state = cluster(node(3, gpu=True))
    assert evaluate(state, pod).unknown[0].why is Why.UNDECODABLE_POD


def test_a_pod_with_an_invalid_quantity_is_unknown():
    pod = gpu_request()
    pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "lots"
    verdict = evaluate(cluster(node(3, gpu=True)), pod)
    assert verdict.outcome is Outcome.UNKNOWN
    assert verdict.unknown[0].why is Why.UNDECODABLE_POD
    assert "lots" in verdict.unknown[0].detail

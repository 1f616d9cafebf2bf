from gpuspawner.kube.objects import convert
from gpuspawner.scheduling import Outcome, evaluate, explain
from tests.unit.makers.objects import cluster, node, pod

ONE = {"gpu": "1"}


def test_a_pod_may_be_plain_or_decoded_and_needs_no_name():
    state = cluster(node(gpu="1"))
    plain = pod(requests=ONE)
    assert evaluate(state, convert("Pod", plain)) == evaluate(state, plain)
    del plain["metadata"]
    assert evaluate(state, plain).outcome is Outcome.FITS


def test_evaluate_lists_failures_only_for_a_refusal_and_explain_always():
    state = cluster(node("a", gpu="1"), node("b"))
    assert evaluate(state, pod(requests=ONE)).failures == {}
    assert set(explain(state, pod(requests=ONE)).failures) == {"b"}
    assert set(evaluate(state, pod(requests={"gpu": "2"})).failures) == {"a", "b"}


def test_a_verdict_does_not_change_with_the_cluster():
    state = cluster(node("a"), node("b", unschedulable=True))
    verdict = evaluate(state, pod(requests=ONE))
    before = dict(verdict.failures)
    state.put(convert("Node", node("b", gpu="1")))
    state.remove("Node", "", "a")
    evaluate(state, pod(requests=ONE))
    assert dict(verdict.failures) == before
    assert verdict.message.startswith("0/2 nodes")


def test_an_evaluation_does_not_change_the_state():
    state = cluster(node(gpu="1"), pods=[pod("old", node="a", requests=ONE)])
    before = state.version, dict(state.nodes["a"].free)
    evaluate(state, pod(requests=ONE, priority=1))
    assert (state.version, dict(state.nodes["a"].free)) == before

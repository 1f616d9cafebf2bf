from gpuspawner.kube.objects import convert
from gpuspawner.scheduling import Outcome, evaluate, explain, fits_on
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


def test_fits_on_counts_the_extra_pods():
    state = cluster(node("a", gpu="2"), node("b"))
    assert fits_on(state, "a", pod(requests=ONE), [pod("x", requests=ONE)]) is True
    more = [pod("x", requests=ONE), pod("y", requests=ONE)]
    assert fits_on(state, "a", pod(requests=ONE), more) is False
    assert fits_on(state, "b", pod(requests=ONE)) is False
    assert fits_on(state, "gone", pod()) is False


def test_fits_on_is_unknown_beside_an_undecodable_pod():
    state = cluster(node(gpu="2"))
    assert fits_on(state, "a", pod(), [pod("x", requests={"gpu": "few"})]) is None
    assert fits_on(state, "a", pod(), [{"spec": 5}]) is None
    assert fits_on(state, "a", pod(schedulerName="other")) is None


def test_fits_on_is_about_no_other_node():
    class_ = {"metadata": {"name": "g"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}}
    nodes = node("a", {"x": "y"}, gpu="1"), node("b")
    old = pod("old", node="a", requests=ONE)
    state = cluster(*nodes, pods=[old], deviceClasses=[class_])
    assert fits_on(state, "b", pod(requests=ONE)) is None  # its drivers may have some
    assert fits_on(state, "b", pod(requests=ONE, nodeSelector={"x": "y"})) is False
    assert fits_on(state, "a", pod(requests=ONE)) is False


def test_the_anti_affinity_of_extra_pods_counts():
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    term = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}
    guard = pod("x", affinity={"podAntiAffinity": {required: [term]}})
    assert fits_on(cluster(node()), "a", pod(), [guard]) is False

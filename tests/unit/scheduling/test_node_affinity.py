"""What kube-scheduler's recorded answers don't say of a pod's choice of nodes."""

from gpuspawner.scheduling.failures import OtherNode
from gpuspawner.scheduling.node_affinity import node_choice, selecting
from tests.unit.makers.objects import judge, named, node, pod, required

MODEL = {"nvidia.com/gpu.product": "A100"}


def test_labels_and_terms_alone_select_nodes_as_those_of_a_pod_do():
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
    spec, free = selecting(MODEL, terms), selecting(MODEL, ())

    assert spec is not None
    assert free is not None
    assert node_choice(spec).matches({**MODEL, "zone": "x"}, "a")
    assert not node_choice(spec).matches(MODEL, "a")
    assert node_choice(free).matches(MODEL, "a")
    assert selecting({}, "none") is None


def test_terms_that_name_two_nodes_at_once_are_a_conflict():
    verdict = judge(pod(**required(named("a", "b"))), node("a"), node("b"))
    assert verdict.message == "0/2 nodes are available: pod affinity terms conflict."


def test_a_pod_that_names_its_node_fits_there_only():
    verdict = judge(pod(nodeName="b"), node("a"), node("b"))
    assert verdict.feasible == ("b",)
    assert verdict.failures["a"] == (OtherNode(),)

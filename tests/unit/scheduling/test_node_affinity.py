from gpuspawner.scheduling import Outcome
from gpuspawner.scheduling.failures import OtherNode
from gpuspawner.scheduling.node_affinity import node_choice, selecting
from tests.unit.makers.objects import judge, named, node, pod, required, texts

MODEL = {"nvidia.com/gpu.product": "A100"}


def test_a_node_must_have_every_label_of_the_node_selector():
    both = node("a", labels={**MODEL, "zone": "x"}), node("b", labels=MODEL)
    asks = pod(nodeSelector={**MODEL, "zone": "x"})
    verdict = judge(asks, *both)
    assert verdict.feasible == ("a",)
    assert texts(verdict, "b") == ["node(s) didn't match Pod's node affinity/selector"]


def test_one_of_the_affinity_terms_must_match():
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "xy"
    ]
    nodes = [node(zone, labels={"zone": zone}) for zone in "xyz"]
    assert judge(pod(**required(*terms)), *nodes).feasible == ("x", "y")


def test_node_affinity_without_terms_matches_nothing():
    assert judge(pod(**required()), node()).outcome is Outcome.IMPOSSIBLE


def test_labels_and_terms_alone_select_nodes_as_those_of_a_pod_do():
    terms = [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
    spec, free = selecting(MODEL, terms), selecting(MODEL, ())

    assert spec is not None
    assert free is not None
    assert node_choice(spec).matches({**MODEL, "zone": "x"}, "a")
    assert not node_choice(spec).matches(MODEL, "a")
    assert node_choice(free).matches(MODEL, "a")
    assert selecting({}, "none") is None


def test_nodes_that_no_term_names_appear_only_in_the_message():
    taints = [{"key": "gpu", "effect": "NoSchedule"}]
    verdict = judge(pod(**required(named("a"))), node("a", taints=taints), node("b"), node("c"))
    assert set(verdict.reasons) == {"a"}
    assert verdict.message == (
        "0/3 nodes are available: 1 node(s) had untolerated taint(s),"
        " 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


def test_terms_that_name_two_nodes_at_once_are_a_conflict():
    verdict = judge(pod(**required(named("a", "b"))), node("a"), node("b"))
    assert verdict.message == "0/2 nodes are available: pod affinity terms conflict."


def test_a_pod_that_names_its_node_fits_there_only():
    verdict = judge(pod(nodeName="b"), node("a"), node("b"))
    assert verdict.feasible == ("b",)
    assert verdict.failures["a"] == (OtherNode(),)

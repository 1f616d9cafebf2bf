"""Nodes with their pods, in any order of arrival."""

from gpuspawner.kube.objects import convert
from gpuspawner.scheduling.node_index import NodeIndex
from gpuspawner.scheduling.node_info import pod_info
from gpuspawner.scheduling.rules import DEFAULT_RULES
from tests.unit.makers.objects import node, pod

POD = pod_info(convert("Pod", pod("p", node="a", requests={"gpu": "1"})), DEFAULT_RULES)
NODE = convert("Node", node("a", gpu="2"))


def test_a_pod_that_comes_before_its_node_counts_on_it():
    index = NodeIndex()
    index.add(POD)
    assert index.put(NODE)
    assert index.nodes["a"].free["nvidia.com/gpu"] == 1


def test_pods_of_a_node_that_is_gone_count_when_it_is_back():
    index = NodeIndex()
    index.put(NODE)
    index.add(POD)
    assert index.drop("a")
    assert not index.nodes
    assert index.spare.on("nvidia.com/gpu") == set()
    index.put(NODE)
    assert index.nodes["a"].free["nvidia.com/gpu"] == 1


def test_a_pod_that_ends_on_a_node_that_is_gone_is_forgotten():
    index = NodeIndex()
    index.add(POD)
    index.discard(POD)
    index.put(NODE)
    assert index.nodes["a"].free["nvidia.com/gpu"] == 2


def test_a_node_that_says_the_same_again_has_not_changed():
    index = NodeIndex()
    assert index.put(NODE)
    assert not index.put(NODE)
    assert not index.drop("b")

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.nodes import Taint
from gpuspawner.kube.pods import Toleration
from gpuspawner.scheduling.failures import Cordoned, Untolerated
from gpuspawner.scheduling.taint_toleration import tolerates, untolerated
from tests.unit.scheduling.objects import judge, node, pod

GPU = Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "borne"),
    [
        (Toleration(key="nvidia.com/gpu", operator="Exists"), True),
        (Toleration(key="nvidia.com/gpu", operator="Exists", effect="NoExecute"), False),
        (Toleration(key="nvidia.com/gpu", value="present"), True),
        (Toleration(key="nvidia.com/gpu", operator="Equal", value="absent"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(value="present"), True),  # an empty key still compares the value
        (Toleration(operator="Equal"), False),
        (Toleration(key="nvidia.com/gpu", operator="Gt", value="1"), False),
        (Toleration(key="nvidia.com/gpu", operator="exists"), False),
    ],
)
def test_a_toleration_bears_a_taint_as_in_kubernetes(toleration, borne):
    assert tolerates(toleration, GPU) is borne


def test_the_first_taint_that_nothing_bears_is_told():
    taints = [GPU, Taint(key="team", value="x", effect="NoExecute")]
    bears = [Toleration(key="nvidia.com/gpu", operator="Exists")]
    assert untolerated(taints, bears) == Untolerated("team", "x", "NoExecute")


def test_a_taint_that_only_prefers_keeps_nobody_away():
    taint = {"key": "slow", "effect": "PreferNoSchedule"}
    assert judge(pod(), node(taints=[taint])).feasible == ("a",)


def test_a_cordoned_node_holds_only_pods_that_bear_it():
    cordoned = node(unschedulable=True)
    assert judge(pod(), cordoned).failures["a"] == (Cordoned(),)
    bears = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    assert judge(pod(tolerations=bears), cordoned).feasible == ("a",)


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_taints_are_borne_exactly_if_each_is(keys, borne):
    taints = [Taint(key=key, effect="NoSchedule") for key in keys]
    bears = [Toleration(key=key, operator="Exists") for key in borne]
    assert (untolerated(taints, bears) is None) == (set(keys) <= set(borne))

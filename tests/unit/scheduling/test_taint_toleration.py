import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.nodes import Taint
from gpuspawner.kube.pods import Toleration
from gpuspawner.scheduling.failures import Cordoned, Untolerated
from gpuspawner.scheduling.taint_toleration import tolerates, untolerated
from tests.unit.makers.objects import judge, node, pod

GPU = Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
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
def test_a_toleration_matches_a_taint_like_in_kubernetes(toleration, tolerated):
    assert tolerates(toleration, GPU) is tolerated


@pytest.mark.parametrize(
    ("value", "tolerated"),
    [
        ("950", True),
        ("-3", False),
        ("0950", False),
        ("+950", False),
        ("-0", False),
        ("9" * 19, False),
    ],
)
def test_a_taint_is_compared_only_if_its_number_is_written_as_go_would(value, tolerated):
    taint = Taint(key="sla", value=value, effect="NoSchedule")
    assert tolerates(Toleration(key="sla", operator="Gt", value="-2"), taint) is tolerated


def test_the_first_untolerated_taint_is_reported():
    taints = [GPU, Taint(key="team", value="x", effect="NoExecute")]
    tolerations = [Toleration(key="nvidia.com/gpu", operator="Exists")]
    assert untolerated(taints, tolerations) == Untolerated("team", "x", "NoExecute")


def test_a_prefer_no_schedule_taint_excludes_no_pod():
    taint = {"key": "slow", "effect": "PreferNoSchedule"}
    assert judge(pod(), node(taints=[taint])).feasible == ("a",)


def test_a_cordoned_node_accepts_only_pods_that_tolerate_the_cordon():
    cordoned = node(unschedulable=True)
    assert judge(pod(), cordoned).failures["a"] == (Cordoned(),)
    tolerations = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    assert judge(pod(tolerations=tolerations), cordoned).feasible == ("a",)


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_taints_are_tolerated_exactly_if_each_one_is(keys, tolerated):
    taints = [Taint(key=key, effect="NoSchedule") for key in keys]
    tolerations = [Toleration(key=key, operator="Exists") for key in tolerated]
    assert (untolerated(taints, tolerations) is None) == (set(keys) <= set(tolerated))

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.kube.nodes import Taint
from gpuspawner.kube.pods import Toleration
from gpuspawner.scheduling.failures import Untolerated
from gpuspawner.scheduling.taint_toleration import tolerates, untolerated

GPU = Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(value="present"), True),  # an empty key still compares the value
        (Toleration(operator="Equal"), False),
        (Toleration(key="nvidia.com/gpu", operator="Gt", value="1"), False),
        (Toleration(key="nvidia.com/gpu", operator="exists"), False),
    ],
)
def test_an_odd_toleration_matches_a_taint_like_in_kubernetes(toleration, tolerated):
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


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_taints_are_tolerated_exactly_if_each_one_is(keys, tolerated):
    taints = [Taint(key=key, effect="NoSchedule") for key in keys]
    tolerations = [Toleration(key=key, operator="Exists") for key in tolerated]
    assert (untolerated(taints, tolerations) is None) == (set(keys) <= set(tolerated))

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.scheduling.failures import Insufficient
from gpuspawner.scheduling.node_resources_fit import fits, lacking, wanted
from tests.unit.makers.objects import judge, node, pod, texts

amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "pods"]), st.integers(-3, 6)
)


def test_allocatable_resources_count_and_not_capacity():
    sick = node(gpu="1", capacity={"nvidia.com/gpu": "8"})
    verdict = judge(pod(requests={"gpu": "2"}), sick)
    assert verdict.failures["a"] == (Insufficient("nvidia.com/gpu", 2, 1, 1),)


def test_a_request_of_zero_fits_on_an_over_committed_node():
    there = pod("old", node="a", requests={"gpu": "2"})
    assert judge(pod(requests={"gpu": "0"}), node(gpu="1"), pods=[there]).feasible == ("a",)


def test_every_insufficient_resource_is_reported():
    verdict = judge(pod(requests={"cpu": "9", "gpu": "1"}), node(pods="0"))
    assert sorted(texts(verdict)) == [
        "Insufficient cpu",
        "Insufficient nvidia.com/gpu",
        "Too many pods",
    ]


def test_a_request_above_the_allocatable_amount_is_not_resolvable():
    assert Insufficient("cpu", 2, 0, 2).resolvable
    assert not Insufficient("cpu", 3, 0, 2).resolvable
    assert Insufficient("pods", 1, 0, 0).resolvable


@given(amounts, amounts)
def test_a_resource_is_lacking_exactly_if_the_pod_does_not_fit(requests, free):
    asked = wanted(requests)
    assert fits(asked, free) is not bool(lacking(asked, free, free))


@given(amounts, amounts, st.sampled_from(["cpu", "pods", "nvidia.com/gpu"]))
def test_a_pod_still_fits_when_more_is_free(requests, free, resource):
    asked = wanted(requests)
    if fits(asked, free):
        assert fits(asked, {**free, resource: free.get(resource, 0) + 1})

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.scheduling.failures import Insufficient
from gpuspawner.scheduling.node_resources_fit import fits, lacking, wanted
from tests.unit.scheduling.objects import judge, node, pod, texts

amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "pods"]), st.integers(-3, 6)
)


def test_what_is_allocatable_counts_and_not_capacity():
    sick = node(gpu="1", capacity={"nvidia.com/gpu": "8"})
    verdict = judge(pod(requests={"gpu": "2"}), sick)
    assert verdict.failures["a"] == (Insufficient("nvidia.com/gpu", 2, 1, 1),)


def test_zero_fits_even_where_too_much_is_taken():
    there = pod("old", node="a", requests={"gpu": "2"})
    assert judge(pod(requests={"gpu": "0"}), node(gpu="1"), pods=[there]).feasible == ("a",)


def test_all_that_is_lacking_is_told():
    verdict = judge(pod(requests={"cpu": "9", "gpu": "1"}), node(pods="0"))
    assert sorted(texts(verdict)) == [
        "Insufficient cpu",
        "Insufficient nvidia.com/gpu",
        "Too many pods",
    ]


def test_only_what_a_node_has_at_all_can_be_freed():
    assert Insufficient("cpu", 2, 0, 2).resolvable
    assert not Insufficient("cpu", 3, 0, 2).resolvable
    assert Insufficient("pods", 1, 0, 0).resolvable


@given(amounts, amounts)
def test_something_is_lacking_exactly_if_it_does_not_fit(requests, free):
    asked = wanted(requests)
    assert fits(asked, free) is not bool(lacking(asked, free, free))


@given(amounts, amounts, st.sampled_from(["cpu", "pods", "nvidia.com/gpu"]))
def test_more_room_never_hurts(requests, free, resource):
    asked = wanted(requests)
    if fits(asked, free):
        assert fits(asked, {**free, resource: free.get(resource, 0) + 1})

from hypothesis import given
from hypothesis import strategies as st

from gpuspawner.scheduling.failures import Insufficient
from gpuspawner.scheduling.node_resources_fit import fits, lacking, wanted

amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "pods"]), st.integers(-3, 6)
)


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
